//! Reads the environment and serves until SIGTERM.

use clap::Parser;
use rocket::error::ErrorKind;
use rocket_diesel::{Config, rocket};
use serving::Failure;

fn main() -> Result<(), Failure> {
    let config = Config::parse();
    // Rocket warns of every start and of every request that it refuses.
    serving::log(
        &config.server,
        "warn,rocket=error,rocket_diesel::tasks=error",
    );
    let settings = config.server.clone();
    serving::run(&settings, async move {
        let server = rocket(&config.server, &config.database)?;
        match server.launch().await {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::Shutdown(..)) => {
                tracing::warn!("requests were still running after {:?}", serving::GRACE);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    })
}
