//! The endpoints.

use rocket::{
    delete, get,
    http::Status,
    post, put,
    response::status::Custom,
    serde::{Serialize, json::Json},
};
use serving::Error;
use tasks_store::{NewTask, Task};

use crate::{answer::Refusal, store::Store};

/// A connection, or why there is none: an endpoint says it in its own answer.
type Guard = Result<Store, Error>;

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
pub async fn create(store: Guard, task: Json<NewTask>) -> Result<Custom<Json<Task>>, Refusal> {
    let created = store?
        .run(move |tasks, prepared| tasks.create(&task, prepared))
        .await?;
    Ok(Custom(Status::Created, Json(created)))
}

/// Answers one task.
#[get("/tasks/<id>")]
pub async fn read(store: Guard, id: i32) -> Result<Json<Task>, Refusal> {
    let found = store?
        .run(move |tasks, prepared| tasks.find(id, prepared))
        .await?;
    Ok(found.map(Json).ok_or(Error::NotFound)?)
}

/// Replaces a task's name and state, and answers it.
#[put("/tasks/<id>", data = "<task>")]
pub async fn update(store: Guard, id: i32, task: Json<NewTask>) -> Result<Json<Task>, Refusal> {
    let updated = store?
        .run(move |tasks, prepared| tasks.update(id, &task, prepared))
        .await?;
    Ok(updated.map(Json).ok_or(Error::NotFound)?)
}

/// Removes a task.
#[delete("/tasks/<id>")]
pub async fn delete(store: Guard, id: i32) -> Result<Status, Refusal> {
    let deleted = store?
        .run(move |tasks, prepared| tasks.delete(id, prepared))
        .await?;
    if deleted {
        Ok(Status::NoContent)
    } else {
        Err(Error::NotFound.into())
    }
}
