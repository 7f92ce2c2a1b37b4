//! Pools of connections to the two kinds of database.

use diesel::{
    PgConnection, SqliteConnection,
    connection::SimpleConnection,
    r2d2::{ConnectionManager, CustomizeConnection, Error, Pool, R2D2Connection},
};

/// A pool of connections to one of the databases.
#[derive(Clone)]
pub enum Connections {
    Postgres(Pool<ConnectionManager<PgConnection>>),
    Sqlite(Pool<ConnectionManager<SqliteConnection>>),
}

/// `DATABASE_URL` is not of a kind that there is. Does not repeat it: it may hold a password.
#[derive(Debug, thiserror::Error)]
#[error("DATABASE_URL is neither postgresql://... nor sqlite:///absolute/path")]
pub struct AddressError;

impl Connections {
    /// A pool of at most `size` connections, opened when they are first needed.
    pub fn new(url: &str, size: u32) -> Result<Self, AddressError> {
        if let Some(path) = url.strip_prefix("sqlite://") {
            if !path.starts_with('/') {
                return Err(AddressError);
            }
            let builder = Pool::builder().connection_customizer(Box::new(SqliteSettings));
            Ok(Self::Sqlite(pool(builder, path, size)))
        } else if url.starts_with("postgresql://") || url.starts_with("postgres://") {
            Ok(Self::Postgres(pool(Pool::builder(), url, size)))
        } else {
            Err(AddressError)
        }
    }
}

fn pool<C: R2D2Connection + Send + 'static>(
    builder: diesel::r2d2::Builder<ConnectionManager<C>>,
    address: &str,
    size: u32,
) -> Pool<ConnectionManager<C>> {
    // None is opened ahead: the server starts before its database is there.
    builder
        .max_size(size)
        .min_idle(Some(0))
        .build_unchecked(ConnectionManager::new(address))
}

/// Every connection waits for the one that writes. In WAL mode, which the file is in, a commit
/// needs no synchronous write to be consistent.
#[derive(Debug)]
struct SqliteSettings;

impl CustomizeConnection<SqliteConnection, Error> for SqliteSettings {
    fn on_acquire(&self, connection: &mut SqliteConnection) -> Result<(), Error> {
        connection
            .batch_execute("PRAGMA busy_timeout = 5000; PRAGMA synchronous = NORMAL")
            .map_err(Error::QueryError)
    }
}
