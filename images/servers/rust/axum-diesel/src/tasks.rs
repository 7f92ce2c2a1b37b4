//! The endpoints. Diesel blocks, so each statement runs on a thread where it may.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use serde::Serialize;
use serving::Error;
use tasks_store::{NewTask, Task, TaskStore};
use tokio::task::spawn_blocking;

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
    State(store): State<Option<TaskStore>>,
    Json(task): Json<NewTask>,
) -> Result<(StatusCode, Json<Task>), Error> {
    let created = run(store, move |store| store.create(&task)).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

/// Answers one task.
pub async fn read(
    State(store): State<Option<TaskStore>>,
    Path(id): Path<i32>,
) -> Result<Json<Task>, Error> {
    let found = run(store, move |store| store.find(id)).await?;
    found.map(Json).ok_or(Error::NotFound)
}

/// Replaces a task's name and state, and answers it.
pub async fn update(
    State(store): State<Option<TaskStore>>,
    Path(id): Path<i32>,
    Json(task): Json<NewTask>,
) -> Result<Json<Task>, Error> {
    let updated = run(store, move |store| store.update(id, &task)).await?;
    updated.map(Json).ok_or(Error::NotFound)
}

/// Removes a task.
pub async fn delete(
    State(store): State<Option<TaskStore>>,
    Path(id): Path<i32>,
) -> Result<StatusCode, Error> {
    if run(store, move |store| store.delete(id)).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Error::NotFound)
    }
}

async fn run<T: Send + 'static>(
    store: Option<TaskStore>,
    statement: impl FnOnce(&TaskStore) -> Result<T, tasks_store::Error> + Send + 'static,
) -> Result<T, Error> {
    let store = store.ok_or(Error::NoDatabase)?;
    Ok(spawn_blocking(move || statement(&store)).await??)
}
