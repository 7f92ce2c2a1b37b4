//! Statements that Diesel would keep prepared, and must not.

use diesel::{
    QueryResult, RunQueryDsl,
    backend::Backend,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
};

/// A statement that is prepared for one execution, under no name.
#[derive(Debug, Clone, Copy)]
pub struct Unkept<S>(pub S);

impl<S, DB> QueryFragment<DB> for Unkept<S>
where
    S: QueryFragment<DB>,
    DB: Backend,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.unsafe_to_cache_prepared();
        self.0.walk_ast(out)
    }
}

impl<S: Query> Query for Unkept<S> {
    type SqlType = S::SqlType;
}

impl<S> QueryId for Unkept<S> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<S, C> RunQueryDsl<C> for Unkept<S> {}
