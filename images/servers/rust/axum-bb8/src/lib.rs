//! The `recipes` scenario on Axum, tokio-postgres and bb8: configuration, pool and routes.

mod recipe;
mod routes;
mod statements;

use axum::{Router, routing::get};
use clap::{ArgAction, Parser};
use serving::{DatabaseSettings, ServerSettings};
pub use statements::{Connections, Preparation};

/// What the environment says.
#[derive(Debug, Clone, Parser)]
#[command(
    version,
    about = "Axum, tokio-postgres and bb8, a server of the recipes scenario"
)]
pub struct Config {
    #[command(flatten)]
    pub server: ServerSettings,
    #[command(flatten)]
    pub database: DatabaseSettings,
    /// Whether prepared statements are kept on their connection. Without, each request prepares
    /// its statements anew, as tokio-postgres does with plain text: nearly twice the round trips.
    #[arg(long, env = "STATEMENT_CACHE", default_value = "true", action = ArgAction::Set)]
    pub statement_cache: bool,
}

/// Connections to the database, by way of a pool.
pub type Pool = bb8::Pool<Connections>;

/// A pool that opens its connections when they are first needed; `None` without a database.
///
/// # Errors
/// When `DATABASE_URL` is no address of a Postgres.
pub fn connect(config: &Config) -> Result<Option<Pool>, tokio_postgres::Error> {
    let Some(url) = &config.database.url else {
        return Ok(None);
    };
    let preparation = match (config.database.prepared_statements, config.statement_cache) {
        (false, _) => Preparation::Never,
        (true, false) => Preparation::EachTime,
        (true, true) => Preparation::Once,
    };
    let pool = bb8::Pool::builder()
        .max_size(config.database.connections.get())
        .build_unchecked(Connections::new(url.parse()?, preparation));
    Ok(Some(pool))
}

/// The routes of the scenario.
pub fn router(pool: Option<Pool>) -> Router {
    Router::new()
        .route("/api/v1/recipes", get(routes::random_recipe))
        .with_state(pool)
}
