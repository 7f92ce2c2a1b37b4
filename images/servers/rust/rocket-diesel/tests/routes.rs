//! The routes, without a database and on SQLite; the contract on Postgres is tested on the image.

use clap::Parser;
use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use rocket::{
    Build, Rocket,
    futures::future::join_all,
    http::{ContentType, Method, Status},
    local::{asynchronous, blocking::Client},
};
use rocket_diesel::{Config, rocket};
use tempfile::TempDir;

fn build(arguments: &[&str]) -> Rocket<Build> {
    let config = Config::try_parse_from([&["server"], arguments].concat()).unwrap();
    rocket(&config.server, &config.database).unwrap()
}

fn server(arguments: &[&str]) -> Client {
    Client::untracked(build(arguments)).unwrap()
}

fn send(server: &Client, method: Method, path: &str, body: &str) -> (Status, String) {
    let request = server
        .req(method, path.to_owned())
        .header(ContentType::JSON)
        .body(body);
    let response = request.dispatch();
    (
        response.status(),
        response.into_string().unwrap_or_default(),
    )
}

/// The address of a new file, with the table unless it is to be missing.
fn file(folder: &TempDir, schema: &str) -> String {
    let path = folder.path().join("tasks.db");
    let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
    connection.batch_execute(schema).unwrap();
    format!("sqlite://{}", path.display())
}

/// A server on such a file.
fn on_sqlite(folder: &TempDir, schema: &str) -> Client {
    server(&["--database-url", &file(folder, schema)])
}

#[test]
fn greets_and_is_healthy_without_a_database_and_misses_it_for_tasks() {
    let server = server(&[]);
    for (path, status, text) in [
        ("/", Status::Ok, r#"{"message":"Hello, World!"}"#),
        ("/healthz", Status::Ok, r#"{"status":"ok"}"#),
        (
            "/tasks/1",
            Status::ServiceUnavailable,
            "DATABASE_URL is not set",
        ),
    ] {
        assert_eq!(
            send(&server, Method::Get, path, ""),
            (status, text.to_owned()),
            "{path}"
        );
    }
}

#[test]
fn a_task_lives_and_dies() {
    let folder = TempDir::new().unwrap();
    let server = on_sqlite(
        &folder,
        "CREATE TABLE tasks (id integer PRIMARY KEY, name text NOT NULL, done boolean NOT NULL)",
    );
    let expected = |status, body: &str| (status, body.to_owned());
    let new = r#"{"name":"report","done":false}"#;
    assert_eq!(
        send(&server, Method::Post, "/tasks", new),
        expected(Status::Created, r#"{"id":1,"name":"report","done":false}"#)
    );
    let other = r#"{"name":"another","done":true}"#;
    let updated = expected(Status::Ok, r#"{"id":1,"name":"another","done":true}"#);
    assert_eq!(send(&server, Method::Put, "/tasks/1", other), updated);
    assert_eq!(send(&server, Method::Get, "/tasks/1", ""), updated);
    assert_eq!(
        send(&server, Method::Delete, "/tasks/1", ""),
        expected(Status::NoContent, "")
    );
    let missing = expected(Status::NotFound, "");
    assert_eq!(send(&server, Method::Get, "/tasks/1", ""), missing);
    assert_eq!(send(&server, Method::Put, "/tasks/1", other), missing);
    assert_eq!(send(&server, Method::Delete, "/tasks/1", ""), missing);
}

#[rocket::async_test]
async fn requests_wait_for_each_other_where_there_are_more_of_them_than_connections() {
    let folder = TempDir::new().unwrap();
    let url = file(
        &folder,
        "PRAGMA journal_mode = WAL;
         CREATE TABLE tasks (id integer PRIMARY KEY, name text NOT NULL, done boolean NOT NULL)",
    );
    let server = build(&["--database-url", &url]);
    let client = asynchronous::Client::untracked(server).await.unwrap();
    let requests = (0..40).map(|_| {
        let request = client.post("/tasks").header(ContentType::JSON);
        request
            .body(r#"{"name":"one of many","done":false}"#)
            .dispatch()
    });
    for response in join_all(requests).await {
        assert_eq!(response.status(), Status::Created);
    }
}

#[test]
fn an_address_of_another_kind_is_refused() {
    let arguments = ["server", "--database-url", "mysql://user:secret@host/db"];
    let config = Config::try_parse_from(arguments).unwrap();
    assert!(rocket(&config.server, &config.database).is_err());
}

#[test]
fn half_a_task_is_refused() {
    let (status, _) = send(&server(&[]), Method::Post, "/tasks", r#"{"name":"half"}"#);
    assert_eq!(status, Status::UnprocessableEntity);
}

#[test]
fn an_error_of_the_database_is_not_shown() {
    let folder = TempDir::new().unwrap();
    let server = on_sqlite(&folder, "CREATE TABLE elsewhere (id integer)");
    let (status, body) = send(&server, Method::Get, "/tasks/1", "");
    assert_eq!((status, body.as_str()), (Status::InternalServerError, ""));
}
