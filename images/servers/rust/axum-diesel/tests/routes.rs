//! The routes, without a database and on SQLite; the contract on Postgres is tested on the image.

use std::{
    fs::{read_dir, read_link},
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::spawn,
    time::Duration,
};

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
use tokio::{task::JoinSet, time::timeout};
use tower::ServiceExt;

/// Of a client: long enough for its statement to begin.
const PATIENCE: Duration = Duration::from_millis(200);

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
async fn requests_that_are_given_up_leave_no_connection_beside_those_of_the_pool() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().canonicalize().unwrap().join("tasks.db");
    let mut other = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
    other
        .batch_execute(
            "CREATE TABLE tasks (id integer PRIMARY KEY, name text NOT NULL, done boolean NOT NULL);
             BEGIN EXCLUSIVE",
        )
        .unwrap();
    let url = format!("sqlite://{}", path.display());
    let server = server(&["--database-url", &url, "--database-connections", "1"]);
    for _ in 0..6 {
        let given_up = send(&server, Method::GET, "/tasks/1", "");
        assert!(timeout(PATIENCE, given_up).await.is_err());
        // That of the test is another one.
        assert!(open_files(&path) <= 2);
    }
    other.batch_execute("COMMIT").unwrap();
    assert_eq!(
        send(&server, Method::GET, "/tasks/1", "").await.0,
        StatusCode::NOT_FOUND
    );
}

/// How often this process has the file open.
fn open_files(path: &Path) -> usize {
    let files = read_dir("/proc/self/fd").unwrap().flatten();
    files
        .filter(|file| read_link(file.path()).is_ok_and(|target| target == path))
        .count()
}

#[tokio::test]
async fn a_lost_connection_is_replaced() {
    let (url, opened) = postgres_that_ends();
    let server = server(&["--database-url", &url, "--database-connections", "1"]);
    for request in 1..=3 {
        let (status, _) = send(&server, Method::GET, "/tasks/1", "").await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(opened.load(Ordering::SeqCst), request);
    }
}

/// A Postgres that ends each connection instead of preparing a statement about the tasks. Returns
/// its address and how many connections there were.
fn postgres_that_ends() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let opened = Arc::new(AtomicUsize::new(0));
    let count = opened.clone();
    spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            receive(&mut stream);
            count.fetch_add(1, Ordering::SeqCst);
            // No password is asked for, and it is idle.
            let mut answer: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
            loop {
                stream.write_all(answer).unwrap();
                let mut kind = [0];
                stream.read_exact(&mut kind).unwrap();
                let message = receive(&mut stream);
                answer = match &kind {
                    b"P" if message.windows(5).any(|part| part == b"tasks") => break,
                    b"P" => b"1\0\0\0\x04",
                    b"B" => b"2\0\0\0\x04",
                    b"D" => b"n\0\0\0\x04",
                    b"E" => b"C\0\0\0\x08SET\0",
                    b"S" => b"Z\0\0\0\x05I",
                    _ => b"C\0\0\0\x08SET\0Z\0\0\0\x05I",
                };
            }
        }
    });
    let url = format!("postgresql://laptime@{address}/laptime?sslmode=disable&gssencmode=disable");
    (url, opened)
}

/// A message without its length.
fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut message = vec![0; u32::from_be_bytes(length) as usize - length.len()];
    stream.read_exact(&mut message).unwrap();
    message
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
