//! Reads the environment and serves until SIGTERM.

use axum_bb8::{Config, connect, router};
use clap::Parser;
use serving::Failure;

fn main() -> Result<(), Failure> {
    let config = Config::parse();
    serving::log(&config.server, "warn");
    let settings = config.server.clone();
    serving::run(&settings, async move {
        let pool = connect(&config)?;
        serving::serve(&config.server, router(pool)).await
    })
}
