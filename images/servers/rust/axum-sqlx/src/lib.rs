//! The `users` scenario on Axum and sqlx: configuration, connection pool and routes.

mod users;

use axum::{Router, routing::get};
use clap::Parser;
use serving::{DatabaseSettings, ServerSettings};
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

/// What the environment says.
#[derive(Debug, Clone, Parser)]
#[command(version, about = "Axum and sqlx, a server of the users scenario")]
pub struct Config {
    #[command(flatten)]
    pub server: ServerSettings,
    #[command(flatten)]
    pub database: DatabaseSettings,
}

/// A pool that opens its connections when they are first needed; `None` without a database.
///
/// # Errors
/// When `DATABASE_URL` is no address of a Postgres.
pub fn connect(settings: &DatabaseSettings) -> Result<Option<PgPool>, sqlx::Error> {
    let Some(url) = &settings.url else {
        return Ok(None);
    };
    let options: PgConnectOptions = url.parse()?;
    let pool = PgPoolOptions::new()
        .max_connections(settings.connections.get())
        .connect_lazy_with(options);
    Ok(Some(pool))
}

/// The routes of the scenario; `prepared` says whether statements are kept prepared.
pub fn router(pool: Option<PgPool>, prepared: bool) -> Router {
    Router::new()
        .route("/", get(users::list))
        .with_state(users::Users::new(pool, prepared))
}
