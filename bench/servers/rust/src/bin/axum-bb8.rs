//! `recipes` with axum, tokio-postgres and bb8. Statements are given as text, which tokio-postgres
//! prepares for each request.

use std::collections::HashMap;

use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use axum_extra::extract::CookieJar;
use bb8::Pool;
use bb8_postgres::PostgresConnectionManager;
use by_the_book::{internal_error, serve, variable};
use chrono::{DateTime, Utc};
use serde::Serialize;
use tokio_postgres::{NoTls, Row};

type ConnectionPool = Pool<PostgresConnectionManager<NoTls>>;

#[derive(Serialize)]
struct Author {
    id: i32,
    name: String,
}

#[derive(Serialize)]
struct Reaction {
    id: i32,
    emoji: String,
    created: String,
    author: Author,
}

#[derive(Serialize)]
struct Step {
    id: i32,
    text: String,
    position: String,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Ingredient {
    Ingredient {
        id: i32,
        quantity: String,
        name: String,
        description: String,
        position: String,
        optional: bool,
    },
    Section {
        id: i32,
        title: String,
        position: String,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Entry {
    Event {
        id: i32,
        action: String,
        created: String,
        author: Author,
    },
    Note {
        id: i32,
        text: String,
        created: String,
        author: Author,
        reactions: Vec<Reaction>,
    },
}

#[derive(Serialize)]
struct Recipe {
    id: i32,
    name: String,
    author: String,
    source: String,
    time: String,
    servings: String,
    created: String,
    ingredients: Vec<Ingredient>,
    steps: Vec<Step>,
    timeline: Vec<Entry>,
}

fn created(row: &Row) -> String {
    row.get::<_, DateTime<Utc>>("created").to_rfc3339()
}

fn author(row: &Row) -> Author {
    Author {
        id: row.get("author_id"),
        name: row.get("author_name"),
    }
}

async fn random_recipe(
    State(pool): State<ConnectionPool>,
    cookies: CookieJar,
) -> Result<Json<Recipe>, (StatusCode, String)> {
    let unauthorized = || (StatusCode::UNAUTHORIZED, String::new());
    let session = cookies.get("sessionid").ok_or_else(unauthorized)?.value();

    let connection = pool.get().await.map_err(internal_error)?;
    connection
        .batch_execute("SET TIME ZONE 'UTC'")
        .await
        .map_err(internal_error)?;
    let user_id: i32 = connection
        .query_opt(
            "SELECT user_id FROM sessions WHERE session_key = $1 AND expires > now()",
            &[&session],
        )
        .await
        .map_err(internal_error)?
        .ok_or_else(unauthorized)?
        .get("user_id");
    let recipe = connection
        .query_opt(
            "SELECT r.id, r.name, r.author, r.source, r.time, r.servings, r.created FROM recipes r
             WHERE r.owner_user_id = $1 OR EXISTS (SELECT 1 FROM memberships m
                 WHERE m.team_id = r.owner_team_id AND m.user_id = $1 AND m.is_active)
             ORDER BY random() LIMIT 1",
            &[&user_id],
        )
        .await
        .map_err(internal_error)?
        .ok_or((StatusCode::NOT_FOUND, String::new()))?;
    let recipe_id: i32 = recipe.get("id");
    let ingredients = connection
        .query(
            "SELECT id, quantity, name, description, position, optional FROM ingredients
             WHERE recipe_id = $1 AND deleted IS NULL ORDER BY position",
            &[&recipe_id],
        )
        .await
        .map_err(internal_error)?;
    let steps = connection
        .query(
            "SELECT id, text, position FROM steps
             WHERE recipe_id = $1 AND deleted IS NULL ORDER BY position",
            &[&recipe_id],
        )
        .await
        .map_err(internal_error)?;
    let sections = connection
        .query(
            "SELECT id, title, position FROM sections
             WHERE recipe_id = $1 AND deleted IS NULL ORDER BY position",
            &[&recipe_id],
        )
        .await
        .map_err(internal_error)?;
    let notes = connection
        .query(
            "SELECT n.id, n.text, n.created, u.id AS author_id, u.name AS author_name
             FROM notes n JOIN users u ON u.id = n.created_by_id
             WHERE n.recipe_id = $1 AND n.deleted IS NULL ORDER BY n.created DESC",
            &[&recipe_id],
        )
        .await
        .map_err(internal_error)?;
    let note_ids: Vec<i32> = notes.iter().map(|row| row.get("id")).collect();
    let reactions = connection
        .query(
            "SELECT x.id, x.note_id, x.emoji, x.created, u.id AS author_id, u.name AS author_name
             FROM reactions x JOIN users u ON u.id = x.created_by_id
             WHERE x.note_id = ANY($1) ORDER BY x.created",
            &[&note_ids],
        )
        .await
        .map_err(internal_error)?;
    let events = connection
        .query(
            "SELECT e.id, e.action, e.created, u.id AS author_id, u.name AS author_name
             FROM timeline_events e JOIN users u ON u.id = e.created_by_id
             WHERE e.recipe_id = $1 ORDER BY e.created DESC",
            &[&recipe_id],
        )
        .await
        .map_err(internal_error)?;

    let mut reactions_by_note: HashMap<i32, Vec<Reaction>> = HashMap::new();
    for row in &reactions {
        let reaction = Reaction {
            id: row.get("id"),
            emoji: row.get("emoji"),
            created: created(row),
            author: author(row),
        };
        let note_id = row.get("note_id");
        reactions_by_note.entry(note_id).or_default().push(reaction);
    }
    let ingredients = ingredients.iter().map(|row| Ingredient::Ingredient {
        id: row.get("id"),
        quantity: row.get("quantity"),
        name: row.get("name"),
        description: row.get("description"),
        position: row.get("position"),
        optional: row.get("optional"),
    });
    let sections = sections.iter().map(|row| Ingredient::Section {
        id: row.get("id"),
        title: row.get("title"),
        position: row.get("position"),
    });
    let events = events.iter().map(|row| Entry::Event {
        id: row.get("id"),
        action: row.get("action"),
        created: created(row),
        author: author(row),
    });
    let notes = notes.iter().map(|row| Entry::Note {
        id: row.get("id"),
        text: row.get("text"),
        created: created(row),
        author: author(row),
        reactions: reactions_by_note.remove(&row.get("id")).unwrap_or_default(),
    });
    Ok(Json(Recipe {
        id: recipe_id,
        name: recipe.get("name"),
        author: recipe.get("author"),
        source: recipe.get("source"),
        time: recipe.get("time"),
        servings: recipe.get("servings"),
        created: created(&recipe),
        ingredients: ingredients.chain(sections).collect(),
        steps: steps
            .iter()
            .map(|row| Step {
                id: row.get("id"),
                text: row.get("text"),
                position: row.get("position"),
            })
            .collect(),
        timeline: events.chain(notes).collect(),
    }))
}

#[tokio::main]
async fn main() {
    let manager =
        PostgresConnectionManager::new_from_stringlike(variable::<String>("DATABASE_URL"), NoTls)
            .unwrap();
    let pool = Pool::builder()
        .max_size(variable("DATABASE_CONNECTIONS"))
        .build(manager)
        .await
        .unwrap();
    let app = Router::new()
        .route("/api/v1/recipes", get(random_recipe))
        .with_state(pool);
    serve(app).await;
}
