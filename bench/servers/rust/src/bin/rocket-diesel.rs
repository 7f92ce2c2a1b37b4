//! `tasks` with Rocket, Diesel and rocket_sync_db_pools, which is the pool of Rocket's guide.
//!
//! Address, port, workers and the pool are Rocket's own settings: start.sh sets them.

use rocket::{
    delete, get,
    http::Status,
    launch, post, put,
    response::{Debug, status::Custom},
    routes,
    serde::{Deserialize, Serialize, json::Json},
};
use rocket_sync_db_pools::{
    database,
    diesel::{self, prelude::*},
};

#[database("tasks")]
struct Database(diesel::PgConnection);

table! {
    tasks (id) {
        id -> Integer,
        name -> Text,
        done -> Bool,
    }
}

#[derive(Serialize, Queryable, Selectable)]
#[serde(crate = "rocket::serde")]
struct Task {
    id: i32,
    name: String,
    done: bool,
}

#[derive(Deserialize, Insertable, AsChangeset)]
#[serde(crate = "rocket::serde")]
#[diesel(table_name = tasks)]
struct NewTask {
    name: String,
    done: bool,
}

#[derive(Serialize)]
#[serde(crate = "rocket::serde")]
struct Hello {
    message: &'static str,
}

type Answer<T> = Result<T, Debug<diesel::result::Error>>;

#[get("/")]
fn hello() -> Json<Hello> {
    Json(Hello {
        message: "Hello, World!",
    })
}

#[post("/tasks", data = "<task>")]
async fn create(database: Database, task: Json<NewTask>) -> Answer<Custom<Json<Task>>> {
    let created = database
        .run(|connection| {
            diesel::insert_into(tasks::table)
                .values(task.into_inner())
                .returning(Task::as_returning())
                .get_result(connection)
        })
        .await?;
    Ok(Custom(Status::Created, Json(created)))
}

#[get("/tasks/<id>")]
async fn read(database: Database, id: i32) -> Answer<Option<Json<Task>>> {
    let task = database
        .run(move |connection| {
            tasks::table
                .find(id)
                .select(Task::as_select())
                .first(connection)
                .optional()
        })
        .await?;
    Ok(task.map(Json))
}

#[put("/tasks/<id>", data = "<task>")]
async fn update(database: Database, id: i32, task: Json<NewTask>) -> Answer<Option<Json<Task>>> {
    let updated = database
        .run(move |connection| {
            diesel::update(tasks::table.find(id))
                .set(task.into_inner())
                .returning(Task::as_returning())
                .get_result(connection)
                .optional()
        })
        .await?;
    Ok(updated.map(Json))
}

#[delete("/tasks/<id>")]
async fn delete(database: Database, id: i32) -> Answer<Status> {
    let count = database
        .run(move |connection| diesel::delete(tasks::table.find(id)).execute(connection))
        .await?;
    Ok(if count == 1 {
        Status::NoContent
    } else {
        Status::NotFound
    })
}

#[get("/healthz")]
fn healthz() -> &'static str {
    "ok"
}

#[launch]
fn rocket() -> _ {
    rocket::build()
        .attach(Database::fairing())
        .mount("/", routes![hello, create, read, update, delete, healthz])
}
