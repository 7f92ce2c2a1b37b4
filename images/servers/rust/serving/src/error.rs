//! What can go wrong while a request is answered.

use crate::Failure;

/// An error of a request. The client learns its kind, the log its text.
#[derive(Debug)]
pub enum Error {
    /// The run has no database.
    NoDatabase,
    /// The request says nobody that may see anything.
    Unauthorized,
    /// There is nothing under that name.
    NotFound,
    /// The database refused, failed or could not be reached.
    Internal(Failure),
}

/// Whatever a library fails with is nothing that a client should read.
impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Internal(error.into())
    }
}

impl Error {
    /// The status of the answer and its text. Writes to the log what the client must not see.
    #[must_use]
    pub fn answer(&self) -> (u16, &'static str) {
        match self {
            Self::NoDatabase => (503, "DATABASE_URL is not set"),
            Self::Unauthorized => (401, ""),
            Self::NotFound => (404, ""),
            Self::Internal(error) => {
                tracing::error!("{error}");
                (500, "")
            }
        }
    }
}

#[cfg(feature = "axum")]
impl axum::response::IntoResponse for Error {
    fn into_response(self) -> axum::response::Response {
        let (status, text) = self.answer();
        let status = axum::http::StatusCode::from_u16(status)
            .unwrap_or(axum::http::StatusCode::INTERNAL_SERVER_ERROR);
        (status, text).into_response()
    }
}
