//! The tasks of the scenario `tasks`: one table, with Diesel on Postgres or SQLite.
//!
//! Every method runs one statement on a connection of the pool and blocks its thread meanwhile.

mod connections;
mod statement;

use diesel::{
    OptionalExtension, RunQueryDsl,
    prelude::{AsChangeset, Connection, Identifiable, Insertable, QueryDsl, Queryable},
    r2d2::PoolError,
    result::Error as DieselError,
};
use serde::{Deserialize, Serialize};

pub use connections::AddressError;
use connections::Connections;
use statement::Unkept;

diesel::table! {
    tasks (id) {
        id -> Integer,
        name -> Text,
        done -> Bool,
    }
}

/// A task as a client sends it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Insertable, AsChangeset)]
#[diesel(table_name = tasks)]
pub struct NewTask {
    pub name: String,
    pub done: bool,
}

/// A task of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Queryable, Identifiable)]
#[diesel(table_name = tasks)]
pub struct Task {
    pub id: i32,
    pub name: String,
    pub done: bool,
}

/// Why a statement has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection within the pool's time-out of 30 s.
    #[error("connection: {0}")]
    Connection(#[from] PoolError),
    /// The database refused the statement.
    #[error("database: {0}")]
    Database(#[from] DieselError),
}

/// The table of tasks, reached through a pool of connections.
#[derive(Clone)]
pub struct TaskStore {
    connections: Connections,
    prepared: bool,
}

/// Runs a statement on a connection of whichever database there is.
///
/// Diesel keeps every statement prepared on its connection. Without that it prepares it under no
/// name and executes it with a second message: a transaction makes PgBouncer send both to the same
/// connection. SQLite has nothing in between and keeps its statements in any case.
macro_rules! run {
    ($store:ident, $statement:expr, $method:ident) => {
        match &$store.connections {
            Connections::Postgres(pool) => {
                let mut connection = pool.get()?;
                if $store.prepared {
                    $statement.$method(&mut connection)
                } else {
                    connection.transaction(|connection| Unkept($statement).$method(connection))
                }
            }
            Connections::Sqlite(pool) => $statement.$method(&mut pool.get()?),
        }
    };
}

impl TaskStore {
    /// A store of at most `connections` connections, opened when they are first needed.
    ///
    /// `url` is `postgresql://…` or `sqlite:///absolute/path`; `prepared` says whether statements
    /// are kept prepared on their connection.
    ///
    /// # Errors
    /// When `url` is of another kind.
    pub fn new(url: &str, connections: u32, prepared: bool) -> Result<Self, AddressError> {
        Ok(Self {
            connections: Connections::new(url, connections)?,
            prepared,
        })
    }

    /// Adds a task and returns it with its id.
    ///
    /// # Errors
    /// When there is no connection or the statement fails.
    pub fn create(&self, task: &NewTask) -> Result<Task, Error> {
        let statement = || {
            diesel::insert_into(tasks::table)
                .values(task)
                .returning(tasks::all_columns)
        };
        Ok(run!(self, statement(), get_result)?)
    }

    /// The task called `id`, if there is one.
    ///
    /// # Errors
    /// When there is no connection or the statement fails.
    pub fn find(&self, id: i32) -> Result<Option<Task>, Error> {
        Ok(run!(self, tasks::table.find(id), get_result).optional()?)
    }

    /// Gives the task called `id` another name and state; returns what it is now, if it is there.
    ///
    /// # Errors
    /// When there is no connection or the statement fails.
    pub fn update(&self, id: i32, task: &NewTask) -> Result<Option<Task>, Error> {
        let statement = || {
            diesel::update(tasks::table.find(id))
                .set(task)
                .returning(tasks::all_columns)
        };
        Ok(run!(self, statement(), get_result).optional()?)
    }

    /// Removes the task called `id`; returns whether it was there.
    ///
    /// # Errors
    /// When there is no connection or the statement fails.
    pub fn delete(&self, id: i32) -> Result<bool, Error> {
        Ok(run!(self, diesel::delete(tasks::table.find(id)), execute)? == 1)
    }
}
