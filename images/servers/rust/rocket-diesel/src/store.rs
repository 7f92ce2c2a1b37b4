//! The pool of `rocket_sync_db_pools`, as Rocket's guide has it, for whichever database there is.

use std::time::Duration;

use diesel::{
    Connection as _, PgConnection, QueryResult, SqliteConnection,
    r2d2::{Error as ConnectionError, ManageConnection, Pool, R2D2Connection},
};
use rocket::{
    Build, Request, Rocket, async_trait,
    http::Status,
    request::{FromRequest, Outcome},
};
use rocket_sync_db_pools::{Config, Error as PoolError, PoolResult, Poolable, database};
use serving::Error;
use tasks_store::{Address, AddressError, Tasks, set_up_sqlite};

/// A connection of the pool whose settings are `databases.tasks` of Rocket's.
#[database("tasks")]
pub struct Database(Connection);

/// Whether statements are kept prepared, in Rocket's state where there is a database.
pub struct Prepared(pub bool);

/// The table of tasks, reached through a connection of the pool.
pub struct Store {
    database: Database,
    prepared: bool,
}

impl Store {
    /// Runs `statement` on a thread where it may block. It is told whether statements are kept
    /// prepared.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn run<T: Send + 'static>(
        &self,
        statement: impl FnOnce(&mut dyn Tasks, bool) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, Error> {
        let prepared = self.prepared;
        let run = move |connection: &mut Connection| statement(connection.0.tasks(), prepared);
        Ok(self.database.run(run).await?)
    }
}

#[async_trait]
impl<'request> FromRequest<'request> for Store {
    type Error = Error;

    async fn from_request(request: &'request Request<'_>) -> Outcome<Self, Error> {
        let Some(&Prepared(prepared)) = request.rocket().state::<Prepared>() else {
            return Outcome::Error((Status::ServiceUnavailable, Error::NoDatabase));
        };
        let Some(database) = Database::from_request(request).await.succeeded() else {
            let error = Error::Internal("the pool has no connection".into());
            return Outcome::Error((Status::InternalServerError, error));
        };
        Outcome::Success(Self { database, prepared })
    }
}

/// A connection to one of the databases.
pub struct Connection(Box<dyn Pooled>);

/// What the pool and the endpoints ask of a connection, whichever database it leads to.
trait Pooled: Send {
    fn tasks(&mut self) -> &mut dyn Tasks;
    fn ping(&mut self) -> QueryResult<()>;
    fn is_broken(&mut self) -> bool;
}

impl<C: Tasks + R2D2Connection + Send> Pooled for C {
    fn tasks(&mut self) -> &mut dyn Tasks {
        self
    }

    fn ping(&mut self) -> QueryResult<()> {
        R2D2Connection::ping(self)
    }

    fn is_broken(&mut self) -> bool {
        R2D2Connection::is_broken(self)
    }
}

/// Opens connections, and asks them whether they work as Diesel's own manager does.
pub struct Manager(Address);

impl ManageConnection for Manager {
    type Connection = Connection;
    type Error = ConnectionError;

    fn connect(&self) -> Result<Connection, ConnectionError> {
        let connection: Box<dyn Pooled> = match &self.0 {
            Address::Postgres(url) => {
                Box::new(PgConnection::establish(url).map_err(ConnectionError::ConnectionError)?)
            }
            Address::Sqlite(path) => {
                let mut connection =
                    SqliteConnection::establish(path).map_err(ConnectionError::ConnectionError)?;
                set_up_sqlite(&mut connection).map_err(ConnectionError::QueryError)?;
                Box::new(connection)
            }
        };
        Ok(Connection(connection))
    }

    fn is_valid(&self, connection: &mut Connection) -> Result<(), ConnectionError> {
        connection.0.ping().map_err(ConnectionError::QueryError)
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        connection.0.is_broken()
    }
}

/// The pools of `rocket_sync_db_pools` for Diesel open all connections before Rocket listens, and
/// set up those to SQLite in another way than the contract has it.
impl Poolable for Connection {
    type Manager = Manager;
    type Error = AddressError;

    fn pool(name: &str, rocket: &Rocket<Build>) -> PoolResult<Self> {
        let config = Config::from(name, rocket)?;
        let address = config.url.parse::<Address>().map_err(PoolError::Custom)?;
        Ok(Pool::builder()
            .max_size(config.pool_size)
            // None is opened ahead: the server starts before its database is there.
            .min_idle(Some(0))
            .connection_timeout(Duration::from_secs(config.timeout.into()))
            .build_unchecked(Manager(address)))
    }
}
