//! The `tasks` scenario on Rocket and Diesel: configuration, pool and routes.

mod answer;
mod store;
mod tasks;

use std::collections::HashSet;

use clap::Parser;
use rocket::{
    Build, Rocket,
    config::{Config as RocketConfig, LogLevel, Shutdown, Sig},
    fairing::AdHoc,
    figment::Figment,
    get,
    response::content::RawJson,
    routes,
};
use serving::{DatabaseSettings, GRACE, ServerSettings};
use store::{Database, Prepared};
use tasks_store::{Address, AddressError};

/// How long a request waits for a place in the pool, which other pools do by themselves; and then as
/// long for a connection, where the database cannot be reached.
const PATIENCE_SECONDS: u8 = 30;

/// What the environment says.
#[derive(Debug, Clone, Parser)]
#[command(version, about = "Rocket and Diesel, a server of the tasks scenario")]
pub struct Config {
    #[command(flatten)]
    pub server: ServerSettings,
    #[command(flatten)]
    pub database: DatabaseSettings,
}

/// The server with its routes. It stops by itself on SIGTERM, once launched.
///
/// # Errors
/// When `DATABASE_URL` is of a kind that there is no connection for.
pub fn rocket(
    settings: &ServerSettings,
    database: &DatabaseSettings,
) -> Result<Rocket<Build>, AddressError> {
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
    let server = match &database.url {
        Some(url) => {
            url.parse::<Address>()?;
            let config = Figment::from(config)
                .merge(("databases.tasks.url", url))
                .merge(("databases.tasks.pool_size", database.connections))
                .merge(("databases.tasks.timeout", PATIENCE_SECONDS));
            rocket::custom(config)
                .attach(Database::fairing())
                .manage(Prepared(database.prepared_statements))
        }
        None => rocket::custom(config),
    };
    let server = server.mount("/", routes);
    Ok(if settings.access_log {
        server.attach(access_log())
    } else {
        server
    })
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
