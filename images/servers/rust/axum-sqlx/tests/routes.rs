//! The routes without a database; the contract with one is tested on the built image.

use std::net::TcpListener;

use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use axum_sqlx::{Config, connect, router};
use clap::Parser;
use http_body_util::BodyExt;

use tower::ServiceExt;

async fn get(arguments: &[&str], path: &str) -> (StatusCode, String) {
    let config = Config::try_parse_from([&["server"], arguments].concat()).unwrap();
    let request = Request::get(path).body(Body::empty()).unwrap();
    let pool = connect(&config.database).unwrap();
    let response = router(pool, config.database.prepared_statements)
        .oneshot(request)
        .await
        .unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn users_need_a_database() {
    let (status, body) = get(&[], "/").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(body, "DATABASE_URL is not set");
}

#[tokio::test]
async fn an_error_of_the_database_is_not_shown() {
    // Something to connect to; the server is built without TLS and gives up at once.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("postgresql://laptime:secret@{address}/laptime?sslmode=require");
    let (status, body) = get(&["--database-url", &url], "/").await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::INTERNAL_SERVER_ERROR, "")
    );
}

#[test]
fn zero_workers_or_connections_are_refused() {
    for argument in ["--workers=0", "--database-connections=0"] {
        assert!(
            Config::try_parse_from(["server", argument]).is_err(),
            "{argument}"
        );
    }
}
