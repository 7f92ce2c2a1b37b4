//! The endpoints.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use diesel::QueryResult;
use serde::Serialize;
use serving::Error;
use tasks_store::{NewTask, Task, Tasks};

use crate::Store;

/// The answer of the endpoint that does nothing.
#[derive(Debug, Serialize)]
pub struct Hello {
    message: &'static str,
}

/// Greets.
pub async fn hello() -> Json<Hello> {
    Json(Hello {
        message: "Hello, World!",
    })
}

/// Adds a task.
pub async fn create(
    State(store): State<Option<Store>>,
    Json(task): Json<NewTask>,
) -> Result<(StatusCode, Json<Task>), Error> {
    let created = run(store, move |tasks, prepared| tasks.create(&task, prepared)).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

/// Answers one task.
pub async fn read(
    State(store): State<Option<Store>>,
    Path(id): Path<i32>,
) -> Result<Json<Task>, Error> {
    let found = run(store, move |tasks, prepared| tasks.find(id, prepared)).await?;
    found.map(Json).ok_or(Error::NotFound)
}

/// Replaces a task's name and state, and answers it.
pub async fn update(
    State(store): State<Option<Store>>,
    Path(id): Path<i32>,
    Json(task): Json<NewTask>,
) -> Result<Json<Task>, Error> {
    let updated = run(store, move |tasks, prepared| {
        tasks.update(id, &task, prepared)
    })
    .await?;
    updated.map(Json).ok_or(Error::NotFound)
}

/// Removes a task.
pub async fn delete(
    State(store): State<Option<Store>>,
    Path(id): Path<i32>,
) -> Result<StatusCode, Error> {
    let deleted = run(store, move |tasks, prepared| tasks.delete(id, prepared)).await?;
    if deleted {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Error::NotFound)
    }
}

async fn run<T: Send + 'static>(
    store: Option<Store>,
    statement: impl FnOnce(&mut dyn Tasks, bool) -> QueryResult<T> + Send + 'static,
) -> Result<T, Error> {
    store.ok_or(Error::NoDatabase)?.run(statement).await
}
