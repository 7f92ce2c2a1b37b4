//! `GET /api/v1/recipes`: nine statements, one after the other on one connection.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header::COOKIE},
};
use serving::Error;
use tokio_postgres::types::Type;

use crate::{
    Pool,
    recipe::{Recipe, event, ingredient, note, reactions, section, step},
    statements::Query,
};

static SESSION: Query = Query {
    sql: "SELECT user_id FROM sessions WHERE session_key = $1 AND expires > now()",
    parameter: Type::TEXT,
};
static RANDOM: Query = Query {
    sql: "SELECT r.id, r.name, r.author, r.source, r.time, r.servings, r.created FROM recipes r \
          WHERE r.owner_user_id = $1 OR EXISTS (SELECT 1 FROM memberships m \
          WHERE m.team_id = r.owner_team_id AND m.user_id = $1 AND m.is_active) \
          ORDER BY random() LIMIT 1",
    parameter: Type::INT4,
};
static INGREDIENTS: Query = Query {
    sql: "SELECT id, quantity, name, description, position, optional FROM ingredients \
          WHERE recipe_id = $1 AND deleted IS NULL ORDER BY position",
    parameter: Type::INT4,
};
static STEPS: Query = Query {
    sql: "SELECT id, text, position FROM steps \
          WHERE recipe_id = $1 AND deleted IS NULL ORDER BY position",
    parameter: Type::INT4,
};
static SECTIONS: Query = Query {
    sql: "SELECT id, title, position FROM sections \
          WHERE recipe_id = $1 AND deleted IS NULL ORDER BY position",
    parameter: Type::INT4,
};
static NOTES: Query = Query {
    sql: "SELECT n.id, n.text, n.created, u.id, u.name FROM notes n \
          JOIN users u ON u.id = n.created_by_id \
          WHERE n.recipe_id = $1 AND n.deleted IS NULL ORDER BY n.created DESC",
    parameter: Type::INT4,
};
static REACTIONS: Query = Query {
    sql: "SELECT x.id, x.note_id, x.emoji, x.created, u.id, u.name FROM reactions x \
          JOIN users u ON u.id = x.created_by_id WHERE x.note_id = ANY($1) ORDER BY x.created",
    parameter: Type::INT4_ARRAY,
};
static EVENTS: Query = Query {
    sql: "SELECT e.id, e.action, e.created, u.id, u.name FROM timeline_events e \
          JOIN users u ON u.id = e.created_by_id WHERE e.recipe_id = $1 ORDER BY e.created DESC",
    parameter: Type::INT4,
};

/// Answers a random one of the recipes that the session's user may see.
pub async fn random_recipe(
    State(pool): State<Option<Pool>>,
    headers: HeaderMap,
) -> Result<Json<Recipe>, Error> {
    let pool = pool.ok_or(Error::NoDatabase)?;
    let session = session_id(&headers).ok_or(Error::Unauthorized)?;
    let mut connection = pool.get().await?;
    connection.set_time_zone().await?;
    let sessions = connection.rows(&SESSION, &session).await?;
    let user: i32 = sessions.first().ok_or(Error::Unauthorized)?.get(0);
    let recipes = connection.rows(&RANDOM, &user).await?;
    let mut recipe = Recipe::bare(recipes.first().ok_or(Error::NotFound)?);
    let ingredients = connection.rows(&INGREDIENTS, &recipe.id).await?;
    let steps = connection.rows(&STEPS, &recipe.id).await?;
    let sections = connection.rows(&SECTIONS, &recipe.id).await?;
    let notes = connection.rows(&NOTES, &recipe.id).await?;
    let note_ids: Vec<i32> = notes.iter().map(|row| row.get(0)).collect();
    let mut reactions = reactions(&connection.rows(&REACTIONS, &note_ids).await?);
    let events = connection.rows(&EVENTS, &recipe.id).await?;
    drop(connection);

    let sections = sections.iter().map(section);
    recipe.ingredients = ingredients.iter().map(ingredient).chain(sections).collect();
    recipe.steps = steps.iter().map(step).collect();
    let notes = notes.iter().map(|row| note(row, &mut reactions));
    recipe.timeline = events.iter().map(event).chain(notes).collect();
    Ok(Json(recipe))
}

/// The value of the cookie `sessionid`.
fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .find_map(|cookie| cookie.trim().strip_prefix("sessionid="))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(cookies: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(COOKIE, cookie.parse().unwrap());
        }
        session_id(&headers).map(str::to_owned)
    }

    #[test]
    fn the_session_is_found_among_other_cookies() {
        let expected = Some("session-1".to_owned());
        assert_eq!(session(&["sessionid=session-1"]), expected);
        assert_eq!(session(&["a=b; sessionid=session-1; c=d"]), expected);
        assert_eq!(session(&["a=b", "sessionid=session-1"]), expected);
    }

    #[test]
    fn another_cookie_is_no_session() {
        assert_eq!(session(&[]), None);
        assert_eq!(session(&["csrftoken=session-1; mysessionid=1"]), None);
    }
}
