//! Where the database is, and what a connection to a file needs.

use std::str::FromStr;

use diesel::{QueryResult, SqliteConnection, connection::SimpleConnection};

/// Which database `DATABASE_URL` leads to: `postgresql://…` or `sqlite:///absolute/path`.
#[derive(Clone)]
pub enum Address {
    /// The whole URL.
    Postgres(String),
    /// The path of the file.
    Sqlite(String),
}

/// `DATABASE_URL` is not of a kind that there is. Does not repeat it: it may hold a password.
#[derive(Debug, thiserror::Error)]
#[error("DATABASE_URL is neither postgresql://... nor sqlite:///absolute/path")]
pub struct AddressError;

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, AddressError> {
        match url.strip_prefix("sqlite://") {
            Some(path) if path.starts_with('/') => Ok(Self::Sqlite(path.into())),
            None if url.starts_with("postgresql://") || url.starts_with("postgres://") => {
                Ok(Self::Postgres(url.into()))
            }
            _ => Err(AddressError),
        }
    }
}

/// Has a new connection wait for the one that writes. In WAL mode, which the file is in, a commit
/// needs no synchronous write to be consistent.
///
/// # Errors
/// When the file cannot be read.
pub fn set_up_sqlite(connection: &mut SqliteConnection) -> QueryResult<()> {
    connection.batch_execute("PRAGMA busy_timeout = 5000; PRAGMA synchronous = NORMAL")
}
