//! The tasks of the scenario `tasks`: one table, with Diesel on Postgres or SQLite.
//!
//! Every method runs one statement and blocks its thread meanwhile. A pool is left to the servers:
//! each has the one that its framework's documentation shows.

mod address;
mod statement;

use diesel::{
    OptionalExtension, PgConnection, QueryResult, RunQueryDsl, SqliteConnection,
    prelude::{AsChangeset, Connection, Identifiable, Insertable, QueryDsl, Queryable},
};
use serde::{Deserialize, Serialize};

pub use address::{Address, AddressError, set_up_sqlite};
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

/// The table of tasks on one connection. `prepared` says whether a statement is kept prepared on it.
pub trait Tasks {
    /// Adds a task and returns it with its id.
    ///
    /// # Errors
    /// When the statement fails.
    fn create(&mut self, task: &NewTask, prepared: bool) -> QueryResult<Task>;

    /// The task called `id`, if there is one.
    ///
    /// # Errors
    /// When the statement fails.
    fn find(&mut self, id: i32, prepared: bool) -> QueryResult<Option<Task>>;

    /// Gives the task called `id` another name and state; returns what it is now, if it is there.
    ///
    /// # Errors
    /// When the statement fails.
    fn update(&mut self, id: i32, task: &NewTask, prepared: bool) -> QueryResult<Option<Task>>;

    /// Removes the task called `id`; returns whether it was there.
    ///
    /// # Errors
    /// When the statement fails.
    fn delete(&mut self, id: i32, prepared: bool) -> QueryResult<bool>;
}

/// Runs a statement on Postgres.
///
/// Diesel keeps every statement prepared on its connection. Without that it prepares it under no
/// name and executes it with a second message: a transaction makes PgBouncer send both to the same
/// connection.
macro_rules! on_postgres {
    ($connection:expr, $prepared:expr, $statement:expr, $method:ident) => {
        if $prepared {
            $statement.$method($connection)
        } else {
            $connection.transaction(|connection| Unkept($statement).$method(connection))
        }
    };
}

/// Runs a statement on SQLite, which has nothing in between and keeps it prepared in any case.
macro_rules! on_sqlite {
    ($connection:expr, $prepared:expr, $statement:expr, $method:ident) => {{
        let _ = $prepared;
        $statement.$method($connection)
    }};
}

/// The statements are the same, but to Diesel each database has types of its own.
macro_rules! tasks_of {
    ($connection:ty, $run:ident) => {
        impl Tasks for $connection {
            fn create(&mut self, task: &NewTask, prepared: bool) -> QueryResult<Task> {
                let statement = || {
                    diesel::insert_into(tasks::table)
                        .values(task)
                        .returning(tasks::all_columns)
                };
                $run!(self, prepared, statement(), get_result)
            }

            fn find(&mut self, id: i32, prepared: bool) -> QueryResult<Option<Task>> {
                let found: QueryResult<Task> =
                    $run!(self, prepared, tasks::table.find(id), get_result);
                found.optional()
            }

            fn update(
                &mut self,
                id: i32,
                task: &NewTask,
                prepared: bool,
            ) -> QueryResult<Option<Task>> {
                let statement = || {
                    diesel::update(tasks::table.find(id))
                        .set(task)
                        .returning(tasks::all_columns)
                };
                let updated: QueryResult<Task> = $run!(self, prepared, statement(), get_result);
                updated.optional()
            }

            fn delete(&mut self, id: i32, prepared: bool) -> QueryResult<bool> {
                let statement = || diesel::delete(tasks::table.find(id));
                let deleted: QueryResult<usize> = $run!(self, prepared, statement(), execute);
                Ok(deleted? == 1)
            }
        }
    };
}

tasks_of!(PgConnection, on_postgres);
tasks_of!(SqliteConnection, on_sqlite);
