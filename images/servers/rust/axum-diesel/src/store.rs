//! The pool of deadpool-diesel, as axum's example for Diesel has it, for whichever database there is.

use std::sync::Arc;

use deadpool_diesel::{Runtime, postgres, sqlite};
use diesel::{
    PgConnection, QueryResult, SqliteConnection,
    connection::{AnsiTransactionManager, TransactionManager},
    result::{DatabaseErrorKind, Error as DatabaseError},
};
use serving::{DatabaseSettings, Error, Failure};
use tasks_store::{Address, Tasks, set_up_sqlite};
use tokio::sync::Semaphore;

/// The table of tasks, reached through a pool of connections.
#[derive(Clone)]
pub struct Store {
    pool: Pool,
    /// As many as the pool has connections, so that none is waited for inside it.
    places: Arc<Semaphore>,
    prepared: bool,
}

#[derive(Clone)]
enum Pool {
    Postgres(postgres::Pool),
    Sqlite(sqlite::Pool),
}

impl Store {
    /// A store whose connections are opened when they are first needed.
    ///
    /// # Errors
    /// When `url` is of a kind that there is no connection for.
    pub fn new(url: &str, settings: &DatabaseSettings) -> Result<Self, Failure> {
        let size = usize::try_from(settings.connections.get())?;
        let pool = match url.parse::<Address>()? {
            Address::Postgres(url) => {
                let manager = postgres::Manager::new(url, Runtime::Tokio1);
                Pool::Postgres(postgres::Pool::builder(manager).max_size(size).build()?)
            }
            Address::Sqlite(path) => {
                let manager = sqlite::Manager::new(path, Runtime::Tokio1);
                let hook = sqlite::Hook::async_fn(|connection, _| Box::pin(set_up(connection)));
                let builder = sqlite::Pool::builder(manager).post_create(hook);
                Pool::Sqlite(builder.max_size(size).build()?)
            }
        };
        Ok(Self {
            pool,
            places: Arc::new(Semaphore::new(size)),
            prepared: settings.prepared_statements,
        })
    }

    /// Runs `statement` on a connection, on a thread where it may block. It is told whether
    /// statements are kept prepared.
    ///
    /// Who waits for a connection may give up. Who has one does not: the pool would take a
    /// connection back while its statement still runs, or open another beside one that it dropped.
    ///
    /// # Errors
    /// When there is no connection or the statement fails.
    pub async fn run<T: Send + 'static>(
        &self,
        statement: impl FnOnce(&mut dyn Tasks, bool) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, Error> {
        let place = self.places.clone().acquire_owned().await?;
        let (pool, prepared) = (self.pool.clone(), self.prepared);
        let running = tokio::spawn(async move {
            let result = pool.run(move |tasks| statement(tasks, prepared)).await;
            drop(place);
            result
        });
        running.await?
    }
}

impl Pool {
    async fn run<T: Send + 'static>(
        &self,
        statement: impl FnOnce(&mut dyn Tasks) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, Error> {
        let result = match self {
            Self::Postgres(pool) => {
                let connection = pool.get().await?;
                connection
                    .interact(move |connection| {
                        let result = statement(connection);
                        if let Err(error) = &result {
                            mark_if_lost(connection, error);
                        }
                        result
                    })
                    .await
            }
            Self::Sqlite(pool) => {
                let connection = pool.get().await?;
                connection
                    .interact(move |connection| statement(connection))
                    .await
            }
        };
        // Threads cannot share this error, so its text has to do.
        Ok(result.map_err(|error| Error::Internal(error.to_string().into()))??)
    }
}

/// Makes the pool open another connection instead of a lost one. It asks Diesel whether a
/// connection is broken, and Diesel does not notice it where a statement cannot be prepared.
fn mark_if_lost(connection: &mut PgConnection, error: &DatabaseError) {
    if let DatabaseError::DatabaseError(
        DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
        _,
    ) = error
    {
        AnsiTransactionManager::transaction_manager_status_mut(connection).set_in_error();
    }
}

async fn set_up(
    connection: &mut deadpool_diesel::Connection<SqliteConnection>,
) -> Result<(), sqlite::HookError> {
    let result = connection.interact(set_up_sqlite).await;
    result
        .map_err(|error| sqlite::HookError::message(error.to_string()))?
        .map_err(|error| sqlite::HookError::Backend(deadpool_diesel::Error::Ping(error)))
}
