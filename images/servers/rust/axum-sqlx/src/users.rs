//! `GET /`: the first hundred users.

use axum::{Json, extract::State};
use serde::Serialize;
use serving::Error;
use sqlx::{FromRow, PgPool};

const LIST: &str = r#"SELECT user_id, username, email FROM "user" ORDER BY user_id LIMIT 100"#;

/// What the endpoint needs.
#[derive(Debug, Clone)]
pub struct Users {
    pool: Option<PgPool>,
    prepared: bool,
}

impl Users {
    /// `prepared` says whether the statement is kept prepared on its connection.
    pub fn new(pool: Option<PgPool>, prepared: bool) -> Self {
        Self { pool, prepared }
    }
}

/// One user in an answer.
#[derive(Debug, Serialize, FromRow)]
#[expect(clippy::struct_field_names, reason = "the scenario names the fields")]
pub struct User {
    user_id: String,
    username: String,
    email: String,
}

/// Answers the first hundred users, ordered by their id.
pub async fn list(State(users): State<Users>) -> Result<Json<Vec<User>>, Error> {
    let pool = users.pool.as_ref().ok_or(Error::NoDatabase)?;
    let rows = sqlx::query_as(LIST)
        .persistent(users.prepared)
        .fetch_all(pool)
        .await?;
    Ok(Json(rows))
}
