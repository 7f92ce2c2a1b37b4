//! What the environment says, as docs/servers.md lists it.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::{NonZeroU16, NonZeroU32, NonZeroUsize},
};

use clap::{ArgAction, Args};

/// The settings of every server.
#[derive(Debug, Clone, Args)]
pub struct ServerSettings {
    /// The port to listen on, on every address.
    #[arg(long, env = "PORT", default_value = "8080")]
    pub port: u16,
    /// Threads that run requests.
    #[arg(long, env = "WORKERS", default_value = "1")]
    pub workers: NonZeroUsize,
    /// Whether every request is written to the log.
    #[arg(long, env = "ACCESS_LOG", default_value = "false", action = ArgAction::Set)]
    pub access_log: bool,
    /// The port that profiles can be had on; without it there are none.
    #[arg(long, env = "PROFILE_PORT")]
    pub profile_port: Option<NonZeroU16>,
    /// The pod's own address; without it that is one of IPv4.
    #[arg(long, env = "POD_IP")]
    pub pod_ip: Option<String>,
}

impl ServerSettings {
    /// All addresses of the pod, of the family that it has.
    #[must_use]
    pub fn host(&self) -> IpAddr {
        match &self.pod_ip {
            Some(address) if address.contains(':') => Ipv6Addr::UNSPECIFIED.into(),
            _ => Ipv4Addr::UNSPECIFIED.into(),
        }
    }
}

/// The settings of a server that has a database.
#[derive(Debug, Clone, Args)]
pub struct DatabaseSettings {
    /// Where the database is; without it the server has none.
    #[arg(
        id = "database_url",
        long = "database-url",
        env = "DATABASE_URL",
        hide_env_values = true
    )]
    pub url: Option<String>,
    /// The size of the connection pool.
    #[arg(
        id = "database_connections",
        long = "database-connections",
        env = "DATABASE_CONNECTIONS",
        default_value = "5"
    )]
    pub connections: NonZeroU32,
    /// Whether statements are prepared once per connection and then reused.
    #[arg(
        id = "database_prepared_statements",
        long = "database-prepared-statements",
        env = "DATABASE_PREPARED_STATEMENTS",
        default_value = "true",
        action = ArgAction::Set
    )]
    pub prepared_statements: bool,
}
