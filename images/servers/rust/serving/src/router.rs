//! A router that is served until SIGTERM.

use axum::{
    Json, Router,
    extract::Request,
    middleware::{Next, from_fn},
    response::Response,
    routing::get,
    serve::ListenerExt,
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::{Failure, GRACE, ServerSettings};

/// Serves `routes` and `/healthz` until SIGTERM, then ends the requests in flight.
///
/// # Errors
/// When the port is taken or the signal cannot be caught.
pub async fn serve(settings: &ServerSettings, routes: Router) -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind((settings.host(), settings.port))
        .await?
        .tap_io(|stream| {
            // An answer must not wait for the acknowledgement of the one before.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY was refused");
            }
        });
    let (stop, stopping) = watch::channel(false);
    let mut graceful = stopping.clone();
    let server =
        axum::serve(listener, complete(settings, routes)).with_graceful_shutdown(async move {
            // An error means that the sender is gone, which is a reason to stop as well.
            graceful.wait_for(|stop| *stop).await.ok();
        });
    tokio::spawn(async move {
        terminate.recv().await;
        stop.send_replace(true);
    });
    tokio::select! {
        result = server => result?,
        () = deadline(stopping) => tracing::warn!("requests were still running after {GRACE:?}"),
    }
    Ok(())
}

/// `routes` with what every server adds to its own.
fn complete(settings: &ServerSettings, routes: Router) -> Router {
    let routes = routes.route("/healthz", get(healthz));
    if settings.access_log {
        routes.layer(from_fn(log_access))
    } else {
        routes
    }
}

async fn healthz() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

async fn log_access(request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let response = next.run(request).await;
    tracing::info!(target: "access", %method, %uri, status = response.status().as_u16());
    response
}

/// Ends `GRACE` after the signal to stop.
async fn deadline(mut stopping: watch::Receiver<bool>) {
    stopping.wait_for(|stop| *stop).await.ok();
    tokio::time::sleep(GRACE).await;
}

#[cfg(test)]
mod tests {
    use axum::{
        body::Body,
        http::{Request, StatusCode},
    };
    use clap::{Args, Command, FromArgMatches};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    fn settings() -> ServerSettings {
        let command = ServerSettings::augment_args(Command::new("server"));
        ServerSettings::from_arg_matches(&command.get_matches_from(["server"])).unwrap()
    }

    #[tokio::test]
    async fn every_server_is_healthy_without_its_database() {
        let request = Request::get("/healthz").body(Body::empty()).unwrap();
        let response = complete(&settings(), Router::new())
            .oneshot(request)
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, r#"{"status":"ok"}"#);
    }
}
