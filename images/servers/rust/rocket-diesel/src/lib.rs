//! The `tasks` scenario on Rocket and Diesel: configuration, store and routes.

mod answer;
mod tasks;

use std::collections::HashSet;

use clap::Parser;
use rocket::{
    Build, Rocket,
    config::{Config as RocketConfig, LogLevel, Shutdown, Sig},
    fairing::AdHoc,
    get,
    response::content::RawJson,
    routes,
};
use serving::{DatabaseSettings, GRACE, ServerSettings};
use tasks_store::{AddressError, TaskStore};

/// What the environment says.
#[derive(Debug, Clone, Parser)]
#[command(version, about = "Rocket and Diesel, a server of the tasks scenario")]
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
pub fn connect(settings: &DatabaseSettings) -> Result<Option<TaskStore>, AddressError> {
    settings
        .url
        .as_deref()
        .map(|url| {
            TaskStore::new(
                url,
                settings.connections.get(),
                settings.prepared_statements,
            )
        })
        .transpose()
}

/// The server with its routes. It stops by itself on SIGTERM, once launched.
#[must_use]
pub fn rocket(settings: &ServerSettings, store: Option<TaskStore>) -> Rocket<Build> {
    let config = RocketConfig {
        address: settings.host(),
        port: settings.port,
        log_level: LogLevel::Critical,
        cli_colors: false,
        shutdown: Shutdown {
            ctrlc: false,
            signals: HashSet::from([Sig::Term]),
            // Requests may end in the first part; in the second, connections are cut.
            grace: u32::try_from(GRACE.as_secs()).unwrap_or(u32::MAX) - 1,
            mercy: 1,
            ..Shutdown::default()
        },
        ..RocketConfig::release_default()
    };
    let routes = routes![
        healthz,
        tasks::hello,
        tasks::create,
        tasks::read,
        tasks::update,
        tasks::delete
    ];
    let server = rocket::custom(config).manage(store).mount("/", routes);
    if settings.access_log {
        server.attach(access_log())
    } else {
        server
    }
}

#[get("/healthz")]
fn healthz() -> RawJson<&'static str> {
    RawJson(r#"{"status":"ok"}"#)
}

fn access_log() -> AdHoc {
    AdHoc::on_response("access log", |request, response| {
        Box::pin(async move {
            tracing::info!(
                target: "access",
                method = %request.method(),
                uri = %request.uri(),
                status = response.status().code
            );
        })
    })
}
