//! The answer: a recipe with all that belongs to it, made of the rows of its queries.

use std::collections::HashMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use tokio_postgres::Row;

/// A point in time, answered with the offset `+00:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub DateTime<Utc>);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_rfc3339_opts(SecondsFormat::AutoSi, false))
    }
}

/// Who wrote something.
#[derive(Debug, Serialize)]
pub struct Author {
    pub id: i32,
    pub name: String,
}

/// What stands in the list of ingredients.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Ingredient {
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

/// One step of the preparation.
#[derive(Debug, Serialize)]
pub struct Step {
    pub id: i32,
    pub text: String,
    pub position: String,
}

/// What somebody thinks of a note.
#[derive(Debug, Serialize)]
pub struct Reaction {
    pub id: i32,
    pub emoji: String,
    pub created: Time,
    pub author: Author,
}

/// What happened to a recipe, or what somebody wrote about it.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Entry {
    Event {
        id: i32,
        action: String,
        created: Time,
        author: Author,
    },
    Note {
        id: i32,
        text: String,
        created: Time,
        author: Author,
        reactions: Vec<Reaction>,
    },
}

/// A whole recipe.
#[derive(Debug, Serialize)]
pub struct Recipe {
    pub id: i32,
    pub name: String,
    pub author: String,
    pub source: String,
    pub time: String,
    pub servings: String,
    pub created: Time,
    pub ingredients: Vec<Ingredient>,
    pub steps: Vec<Step>,
    pub timeline: Vec<Entry>,
}

impl Recipe {
    /// A recipe of which nothing but its own row is known.
    pub fn bare(row: &Row) -> Self {
        Self {
            id: row.get(0),
            name: row.get(1),
            author: row.get(2),
            source: row.get(3),
            time: row.get(4),
            servings: row.get(5),
            created: Time(row.get(6)),
            ingredients: Vec::new(),
            steps: Vec::new(),
            timeline: Vec::new(),
        }
    }
}

/// A row of the ingredients.
pub fn ingredient(row: &Row) -> Ingredient {
    Ingredient::Ingredient {
        id: row.get(0),
        quantity: row.get(1),
        name: row.get(2),
        description: row.get(3),
        position: row.get(4),
        optional: row.get(5),
    }
}

/// A row of the sections.
pub fn section(row: &Row) -> Ingredient {
    Ingredient::Section {
        id: row.get(0),
        title: row.get(1),
        position: row.get(2),
    }
}

/// A row of the steps.
pub fn step(row: &Row) -> Step {
    Step {
        id: row.get(0),
        text: row.get(1),
        position: row.get(2),
    }
}

/// A row of the events.
pub fn event(row: &Row) -> Entry {
    Entry::Event {
        id: row.get(0),
        action: row.get(1),
        created: Time(row.get(2)),
        author: author(row, 3),
    }
}

/// A row of the notes, with its reactions.
pub fn note(row: &Row, reactions: &mut HashMap<i32, Vec<Reaction>>) -> Entry {
    let id = row.get(0);
    Entry::Note {
        id,
        text: row.get(1),
        created: Time(row.get(2)),
        author: author(row, 3),
        reactions: reactions.remove(&id).unwrap_or_default(),
    }
}

/// The rows of the reactions by note, in their order.
pub fn reactions(rows: &[Row]) -> HashMap<i32, Vec<Reaction>> {
    let mut by_note: HashMap<i32, Vec<Reaction>> = HashMap::new();
    for row in rows {
        by_note.entry(row.get(1)).or_default().push(Reaction {
            id: row.get(0),
            emoji: row.get(2),
            created: Time(row.get(3)),
            author: author(row, 4),
        });
    }
    by_note
}

/// The two columns of a user, from `first` on.
fn author(row: &Row, first: usize) -> Author {
    Author {
        id: row.get(first),
        name: row.get(first + 1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    fn time(text: &str) -> Time {
        Time(text.parse().unwrap())
    }

    #[test]
    fn times_are_in_utc_with_an_offset() {
        let answer = to_value(time("2023-08-07T18:00:00+02:00")).unwrap();
        assert_eq!(answer, "2023-08-07T16:00:00+00:00");
    }

    #[test]
    fn entries_say_what_they_are() {
        let author = Author {
            id: 53,
            name: "Dilan".into(),
        };
        let event = Entry::Event {
            id: 1,
            action: "archived".into(),
            created: time("2023-02-12T04:30:00Z"),
            author,
        };
        assert_eq!(
            to_value(event).unwrap(),
            json!({
                "type": "event", "id": 1, "action": "archived",
                "created": "2023-02-12T04:30:00+00:00", "author": {"id": 53, "name": "Dilan"},
            })
        );
        let section = Ingredient::Section {
            id: 2,
            title: "To serve".into(),
            position: "a6v".into(),
        };
        assert_eq!(
            to_value(section).unwrap(),
            json!({"type": "section", "id": 2, "title": "To serve", "position": "a6v"})
        );
    }
}
