//! The pool of deadpool-diesel, as axum's example for Diesel has it, for whichever database there is.

use deadpool_diesel::{Runtime, postgres, sqlite};
use diesel::{QueryResult, SqliteConnection};
use serving::{DatabaseSettings, Error, Failure};
use tasks_store::{Address, Tasks, set_up_sqlite};

/// The table of tasks, reached through a pool of connections.
#[derive(Clone)]
pub struct Store {
    pool: Pool,
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
            prepared: settings.prepared_statements,
        })
    }

    /// Runs `statement` on a connection, on a thread where it may block. It is told whether
    /// statements are kept prepared.
    ///
    /// # Errors
    /// When there is no connection or the statement fails.
    pub async fn run<T: Send + 'static>(
        &self,
        statement: impl FnOnce(&mut dyn Tasks, bool) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, Error> {
        let prepared = self.prepared;
        let result = match &self.pool {
            Pool::Postgres(pool) => {
                let connection = pool.get().await?;
                connection
                    .interact(move |connection| statement(connection, prepared))
                    .await
            }
            Pool::Sqlite(pool) => {
                let connection = pool.get().await?;
                connection
                    .interact(move |connection| statement(connection, prepared))
                    .await
            }
        };
        // Threads cannot share this error, so its text has to do.
        Ok(result.map_err(|error| Error::Internal(error.to_string().into()))??)
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
