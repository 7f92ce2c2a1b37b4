//! Connections that know their prepared statements: tokio-postgres keeps none by itself.

use std::collections::HashMap;

use bb8::ManageConnection;
use bb8_postgres::PostgresConnectionManager;
use tokio_postgres::{
    Client, Config, Error, NoTls, Row, Statement,
    types::{ToSql, Type},
};

/// A statement with one parameter.
#[derive(Debug)]
pub struct Query {
    pub sql: &'static str,
    pub parameter: Type,
}

/// When statements are prepared under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparation {
    /// When a connection first runs them. One round trip from then on.
    Once,
    /// For each execution, which makes it two round trips.
    EachTime,
    /// Never: each is sent as a whole, in one round trip.
    Never,
}

/// A connection of the pool.
pub struct Connection {
    client: Client,
    preparation: Preparation,
    statements: HashMap<&'static str, Statement>,
}

impl Connection {
    /// Makes the session's time zone UTC.
    ///
    /// # Errors
    /// When the connection is lost.
    pub async fn set_time_zone(&self) -> Result<(), Error> {
        self.client.batch_execute("SET TIME ZONE 'UTC'").await
    }

    /// The rows of a query.
    ///
    /// # Errors
    /// When the connection is lost or the query fails.
    pub async fn rows(
        &mut self,
        query: &'static Query,
        value: &(dyn ToSql + Sync),
    ) -> Result<Vec<Row>, Error> {
        match self.preparation {
            Preparation::Once => {
                let statement = self.statement(query).await?;
                self.client.query(&statement, &[value]).await
            }
            Preparation::EachTime => self.client.query(query.sql, &[value]).await,
            Preparation::Never => {
                let parameter = (value, query.parameter.clone());
                self.client.query_typed(query.sql, &[parameter]).await
            }
        }
    }

    async fn statement(&mut self, query: &'static Query) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.get(query.sql) {
            return Ok(statement.clone());
        }
        let types = [query.parameter.clone()];
        let statement = self.client.prepare_typed(query.sql, &types).await?;
        self.statements.insert(query.sql, statement.clone());
        Ok(statement)
    }
}

/// What opens and checks the pool's connections.
#[derive(Debug)]
pub struct Connections {
    postgres: PostgresConnectionManager<NoTls>,
    preparation: Preparation,
}

impl Connections {
    /// Connections to `database`.
    #[must_use]
    pub fn new(database: Config, preparation: Preparation) -> Self {
        Self {
            postgres: PostgresConnectionManager::new(database, NoTls),
            preparation,
        }
    }
}

impl ManageConnection for Connections {
    type Connection = Connection;
    type Error = Error;

    async fn connect(&self) -> Result<Connection, Error> {
        Ok(Connection {
            client: self.postgres.connect().await?,
            preparation: self.preparation,
            statements: HashMap::new(),
        })
    }

    async fn is_valid(&self, connection: &mut Connection) -> Result<(), Error> {
        self.postgres.is_valid(&mut connection.client).await
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        self.postgres.has_broken(&mut connection.client)
    }
}
