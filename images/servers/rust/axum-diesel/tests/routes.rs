//! The routes, without a database and on SQLite; the contract on Postgres is tested on the image.

use axum::{
    Router,
    body::Body,
    http::{Method, Request, StatusCode, header::CONTENT_TYPE},
};
use axum_diesel::{Config, connect, router};
use clap::Parser;
use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use http_body_util::BodyExt;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tower::ServiceExt;

fn server(arguments: &[&str]) -> Router {
    let config = Config::try_parse_from([&["server"], arguments].concat()).unwrap();
    router(connect(&config.database).unwrap())
}

async fn send(
    server: &Router,
    method: Method,
    path: &str,
    body: &'static str,
) -> (StatusCode, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// A server on a new file, with the table unless it is to be missing.
fn on_sqlite(folder: &TempDir, schema: &str) -> Router {
    let path = folder.path().join("tasks.db");
    let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
    connection.batch_execute(schema).unwrap();
    server(&["--database-url", &format!("sqlite://{}", path.display())])
}

#[tokio::test]
async fn greets_without_a_database_and_misses_it_for_tasks() {
    let server = server(&[]);
    let (status, body) = send(&server, Method::GET, "/", "").await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::OK, r#"{"message":"Hello, World!"}"#)
    );
    let (status, body) = send(&server, Method::GET, "/tasks/1", "").await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "DATABASE_URL is not set")
    );
}

#[tokio::test]
async fn a_task_lives_and_dies() {
    let folder = TempDir::new().unwrap();
    let server = on_sqlite(
        &folder,
        "CREATE TABLE tasks (id integer PRIMARY KEY, name text NOT NULL, done boolean NOT NULL)",
    );
    let expected = |status, body: &str| (status, body.to_owned());
    let new = r#"{"name":"report","done":false}"#;
    assert_eq!(
        send(&server, Method::POST, "/tasks", new).await,
        expected(
            StatusCode::CREATED,
            r#"{"id":1,"name":"report","done":false}"#
        )
    );
    let other = r#"{"name":"another","done":true}"#;
    let updated = expected(StatusCode::OK, r#"{"id":1,"name":"another","done":true}"#);
    assert_eq!(send(&server, Method::PUT, "/tasks/1", other).await, updated);
    assert_eq!(send(&server, Method::GET, "/tasks/1", "").await, updated);
    assert_eq!(
        send(&server, Method::DELETE, "/tasks/1", "").await,
        expected(StatusCode::NO_CONTENT, "")
    );
    let missing = expected(StatusCode::NOT_FOUND, "");
    assert_eq!(send(&server, Method::GET, "/tasks/1", "").await, missing);
    assert_eq!(send(&server, Method::PUT, "/tasks/1", other).await, missing);
    assert_eq!(send(&server, Method::DELETE, "/tasks/1", "").await, missing);
}

#[tokio::test]
async fn requests_wait_for_each_other_where_there_are_more_of_them_than_connections() {
    let folder = TempDir::new().unwrap();
    let server = on_sqlite(
        &folder,
        "PRAGMA journal_mode = WAL;
         CREATE TABLE tasks (id integer PRIMARY KEY, name text NOT NULL, done boolean NOT NULL)",
    );
    let mut requests = JoinSet::new();
    for _ in 0..40 {
        let server = server.clone();
        let new = r#"{"name":"one of many","done":false}"#;
        requests.spawn(async move { send(&server, Method::POST, "/tasks", new).await.0 });
    }
    assert_eq!(requests.join_all().await, [StatusCode::CREATED; 40]);
}

#[tokio::test]
async fn half_a_task_is_refused() {
    let (status, _) = send(&server(&[]), Method::POST, "/tasks", r#"{"name":"half"}"#).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn an_error_of_the_database_is_not_shown() {
    let folder = TempDir::new().unwrap();
    let server = on_sqlite(&folder, "CREATE TABLE elsewhere (id integer)");
    assert_eq!(
        send(&server, Method::GET, "/tasks/1", "").await,
        (StatusCode::INTERNAL_SERVER_ERROR, String::new())
    );
}
