//! `tasks` with axum, Diesel and deadpool-diesel, which is the pool of axum's own example.

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::{get, post},
};
use by_the_book::{internal_error, serve, variable};
use deadpool_diesel::{
    Runtime,
    postgres::{Manager, Pool},
};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};

table! {
    tasks (id) {
        id -> Integer,
        name -> Text,
        done -> Bool,
    }
}

#[derive(Serialize, Queryable, Selectable)]
struct Task {
    id: i32,
    name: String,
    done: bool,
}

#[derive(Deserialize, Insertable, AsChangeset)]
#[diesel(table_name = tasks)]
struct NewTask {
    name: String,
    done: bool,
}

type Failure = (StatusCode, String);

async fn create(
    State(pool): State<Pool>,
    Json(new_task): Json<NewTask>,
) -> Result<(StatusCode, Json<Task>), Failure> {
    let task = run(&pool, |connection| {
        diesel::insert_into(tasks::table)
            .values(new_task)
            .returning(Task::as_returning())
            .get_result(connection)
    })
    .await?;
    Ok((StatusCode::CREATED, Json(task)))
}

async fn read(State(pool): State<Pool>, Path(id): Path<i32>) -> Result<Json<Task>, Failure> {
    let task = run(&pool, move |connection| {
        tasks::table
            .find(id)
            .select(Task::as_select())
            .first(connection)
            .optional()
    })
    .await?;
    task.map(Json).ok_or_else(not_found)
}

async fn update(
    State(pool): State<Pool>,
    Path(id): Path<i32>,
    Json(new_task): Json<NewTask>,
) -> Result<Json<Task>, Failure> {
    let task = run(&pool, move |connection| {
        diesel::update(tasks::table.find(id))
            .set(new_task)
            .returning(Task::as_returning())
            .get_result(connection)
            .optional()
    })
    .await?;
    task.map(Json).ok_or_else(not_found)
}

async fn delete(State(pool): State<Pool>, Path(id): Path<i32>) -> Result<StatusCode, Failure> {
    let count = run(&pool, move |connection| {
        diesel::delete(tasks::table.find(id)).execute(connection)
    })
    .await?;
    if count == 1 {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(not_found())
    }
}

async fn run<T: Send + 'static>(
    pool: &Pool,
    query: impl FnOnce(&mut PgConnection) -> QueryResult<T> + Send + 'static,
) -> Result<T, Failure> {
    let connection = pool.get().await.map_err(internal_error)?;
    connection
        .interact(query)
        .await
        .map_err(internal_error)?
        .map_err(internal_error)
}

fn not_found() -> Failure {
    (StatusCode::NOT_FOUND, String::new())
}

#[derive(Serialize)]
struct Hello {
    message: &'static str,
}

async fn hello() -> Json<Hello> {
    Json(Hello {
        message: "Hello, World!",
    })
}

#[tokio::main]
async fn main() {
    let manager = Manager::new(variable::<String>("DATABASE_URL"), Runtime::Tokio1);
    let pool = Pool::builder(manager)
        .max_size(variable("DATABASE_CONNECTIONS"))
        .build()
        .unwrap();
    let app = Router::new()
        .route("/", get(hello))
        .route("/tasks", post(create))
        .route("/tasks/{id}", get(read).put(update).delete(delete))
        .with_state(pool);
    serve(app).await;
}
