//! What every server in Rust does alike: settings from the environment, a runtime with as many
//! threads as told, a log without requests, health, profiles, and an orderly end.

mod error;
mod files;
mod profile;
#[cfg(feature = "axum")]
mod router;
mod settings;

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use tracing_subscriber::EnvFilter;

pub use error::Error;
#[cfg(feature = "axum")]
pub use router::serve;
pub use settings::{DatabaseSettings, ServerSettings};

/// How long requests in flight get to end after SIGTERM.
pub const GRACE: Duration = Duration::from_secs(4);

/// What `main` can fail with.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Writes to the standard output what `levels` let through, and requests when they are asked for;
/// `RUST_LOG` asks for something else.
///
/// `levels` is a list such as `warn,framework=error`.
pub fn log(settings: &ServerSettings, levels: &str) {
    let access = if settings.access_log {
        ",access=info"
    } else {
        ""
    };
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("{levels}{access}")));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stdout().is_terminal())
        .init();
}

/// Runs `server` to its end on `settings.workers` threads. It is spawned: what is only waited for runs
/// on the thread that waits, and would be one more.
///
/// A query that still runs then is left behind: its thread does not keep the process alive.
///
/// # Errors
/// When the runtime cannot start or the port of profiles is taken, when `server` panics, and what it
/// fails with.
pub fn run<F>(settings: &ServerSettings, server: F) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    files::raise_limit()?;
    if let Some(port) = settings.profile_port {
        profile::listen(settings.host(), port)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.workers.get())
        .enable_all()
        .build()?;
    let result = runtime.block_on(runtime.spawn(server));
    runtime.shutdown_background();
    result?
}
