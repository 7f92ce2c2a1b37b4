//! `users` with axum and sqlx.

use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use by_the_book::{internal_error, serve, variable};
use serde::Serialize;
use sqlx::{FromRow, PgPool, postgres::PgPoolOptions};

#[derive(Serialize, FromRow)]
struct User {
    user_id: String,
    username: String,
    email: String,
}

async fn list_users(State(pool): State<PgPool>) -> Result<Json<Vec<User>>, (StatusCode, String)> {
    let users =
        sqlx::query_as(r#"SELECT user_id, username, email FROM "user" ORDER BY user_id LIMIT 100"#)
            .fetch_all(&pool)
            .await
            .map_err(internal_error)?;
    Ok(Json(users))
}

#[tokio::main]
async fn main() {
    let pool = PgPoolOptions::new()
        .max_connections(variable("DATABASE_CONNECTIONS"))
        .connect(&variable::<String>("DATABASE_URL"))
        .await
        .unwrap();
    let app = Router::new().route("/", get(list_users)).with_state(pool);
    serve(app).await;
}
