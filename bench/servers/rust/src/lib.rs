//! What the axum examples share: the listener, and errors as answers.

use std::{env, error::Error, fmt::Debug, str::FromStr};

use axum::{Router, http::StatusCode, routing::get};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

/// The value of an environment variable of the contract, docs/servers.md.
///
/// # Panics
/// When the variable is missing or of another type.
#[must_use]
pub fn variable<T: FromStr<Err: Debug>>(name: &str) -> T {
    let text = env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    text.parse()
        .unwrap_or_else(|error| panic!("{name} cannot be {text:?}: {error:?}"))
}

/// Serves `app` until SIGTERM.
///
/// # Panics
/// When the port is taken.
pub async fn serve(app: Router) {
    let listener = TcpListener::bind(("0.0.0.0", variable("PORT")))
        .await
        .expect("the port is taken");
    axum::serve(listener, app.route("/healthz", get(|| async { "ok" })))
        .with_graceful_shutdown(async {
            signal(SignalKind::terminate()).unwrap().recv().await;
        })
        .await
        .unwrap();
}

/// Any error as a 500.
pub fn internal_error(error: impl Error) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
