//! Reads the environment and serves until SIGTERM.

use axum_sqlx::{Config, connect, router};
use clap::Parser;
use serving::Failure;

fn main() -> Result<(), Failure> {
    let config = Config::parse();
    // sqlx warns of each statement that takes a second and each wait of two for a connection. Under
    // more than a server can do that is a line for a request, which no other server writes.
    serving::log(
        &config.server,
        "warn,sqlx::query=error,sqlx::pool::acquire=error",
    );
    let settings = config.server.clone();
    serving::run(&settings, async move {
        let pool = connect(&config.database)?;
        let routes = router(pool, config.database.prepared_statements);
        serving::serve(&config.server, routes).await
    })
}
