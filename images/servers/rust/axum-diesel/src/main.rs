//! Reads the environment and serves until SIGTERM.

use axum_diesel::{Config, connect, router};
use clap::Parser;
use serving::Failure;

fn main() -> Result<(), Failure> {
    let config = Config::parse();
    serving::log(&config.server, "warn");
    let settings = config.server.clone();
    serving::run(&settings, async move {
        let tasks = connect(&config.database)?;
        serving::serve(&config.server, router(tasks)).await
    })
}
