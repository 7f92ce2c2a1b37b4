//! The route without a database; the contract with one is tested on the built image.

use std::net::TcpListener;

use axum::{
    body::Body,
    http::{Request, StatusCode, header::COOKIE},
};
use axum_bb8::{Config, connect, router};
use clap::Parser;
use http_body_util::BodyExt;
use tower::ServiceExt;

async fn get(arguments: &[&str], cookie: &str) -> (StatusCode, String) {
    let config = Config::try_parse_from([&["server"], arguments].concat()).unwrap();
    let request = Request::get("/api/v1/recipes")
        .header(COOKIE, cookie)
        .body(Body::empty())
        .unwrap();
    let response = router(connect(&config).unwrap())
        .oneshot(request)
        .await
        .unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn recipes_need_a_database() {
    let (status, body) = get(&[], "sessionid=session-1").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(body, "DATABASE_URL is not set");
}

#[tokio::test]
async fn without_a_session_no_connection_is_opened() {
    let url = "postgresql://laptime:secret@127.0.0.1:1/laptime";
    let (status, _) = get(&["--database-url", url], "theme=dark").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_database_is_not_shown() {
    // Something to connect to that never answers: the pool gives up after 30 s, in paused time.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("postgresql://laptime:secret@{address}/laptime?sslmode=require");
    let (status, body) = get(&["--database-url", &url], "sessionid=session-1").await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::INTERNAL_SERVER_ERROR, "")
    );
}
