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
    let rows = if users.prepared {
        sqlx::query_as(LIST).fetch_all(pool).await?
    } else {
        // As one message: sqlx would prepare it under no name and execute it with a second message,
        // which PgBouncer may send to another connection.
        let rows = sqlx::raw_sql(LIST).fetch_all(pool).await?;
        rows.iter().map(User::from_row).collect::<Result<_, _>>()?
    };
    Ok(Json(rows))
}
