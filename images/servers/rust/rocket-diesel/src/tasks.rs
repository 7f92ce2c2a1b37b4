//! The endpoints. Diesel blocks, so each statement runs on a thread where it may.

use rocket::{
    State, delete, get,
    http::Status,
    post, put,
    response::status::Custom,
    serde::{Serialize, json::Json},
    tokio::task::spawn_blocking,
};
use serving::Error;
use tasks_store::{NewTask, Task, TaskStore};

use crate::answer::Refusal;

/// The answer of the endpoint that does nothing.
#[derive(Debug, Serialize)]
#[serde(crate = "rocket::serde")]
pub struct Hello {
    message: &'static str,
}

/// Greets.
#[get("/")]
pub fn hello() -> Json<Hello> {
    Json(Hello {
        message: "Hello, World!",
    })
}

/// Adds a task.
#[post("/tasks", data = "<task>")]
pub async fn create(
    store: &State<Option<TaskStore>>,
    task: Json<NewTask>,
) -> Result<Custom<Json<Task>>, Refusal> {
    let created = run(store, move |store| store.create(&task)).await?;
    Ok(Custom(Status::Created, Json(created)))
}

/// Answers one task.
#[get("/tasks/<id>")]
pub async fn read(store: &State<Option<TaskStore>>, id: i32) -> Result<Json<Task>, Refusal> {
    let found = run(store, move |store| store.find(id)).await?;
    Ok(found.map(Json).ok_or(Error::NotFound)?)
}

/// Replaces a task's name and state, and answers it.
#[put("/tasks/<id>", data = "<task>")]
pub async fn update(
    store: &State<Option<TaskStore>>,
    id: i32,
    task: Json<NewTask>,
) -> Result<Json<Task>, Refusal> {
    let updated = run(store, move |store| store.update(id, &task)).await?;
    Ok(updated.map(Json).ok_or(Error::NotFound)?)
}

/// Removes a task.
#[delete("/tasks/<id>")]
pub async fn delete(store: &State<Option<TaskStore>>, id: i32) -> Result<Status, Refusal> {
    if run(store, move |store| store.delete(id)).await? {
        Ok(Status::NoContent)
    } else {
        Err(Error::NotFound.into())
    }
}

async fn run<T: Send + 'static>(
    store: &State<Option<TaskStore>>,
    statement: impl FnOnce(&TaskStore) -> Result<T, tasks_store::Error> + Send + 'static,
) -> Result<T, Error> {
    let store = store.inner().clone().ok_or(Error::NoDatabase)?;
    Ok(spawn_blocking(move || statement(&store)).await??)
}
