//! The `tasks` scenario on Axum and Diesel: configuration, store and routes.

mod store;
mod tasks;

use axum::{
    Router,
    routing::{get, post},
};
use clap::Parser;
use serving::{DatabaseSettings, Failure, ServerSettings};
pub use store::Store;

/// What the environment says.
#[derive(Debug, Clone, Parser)]
#[command(version, about = "Axum and Diesel, a server of the tasks scenario")]
pub struct Config {
    #[command(flatten)]
    pub server: ServerSettings,
    #[command(flatten)]
    pub database: DatabaseSettings,
}

/// The store of the tasks; `None` without a database.
///
/// # Errors
/// When `DATABASE_URL` is of a kind that there is no connection for.
pub fn connect(settings: &DatabaseSettings) -> Result<Option<Store>, Failure> {
    settings
        .url
        .as_deref()
        .map(|url| Store::new(url, settings))
        .transpose()
}

/// The routes of the scenario.
pub fn router(store: Option<Store>) -> Router {
    Router::new()
        .route("/", get(tasks::hello))
        .route("/tasks", post(tasks::create))
        .route(
            "/tasks/{id}",
            get(tasks::read).put(tasks::update).delete(tasks::delete),
        )
        .with_state(store)
}
