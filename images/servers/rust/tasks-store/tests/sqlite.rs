//! The table on a file of SQLite; Postgres is tested with the whole server.

use std::{collections::BTreeSet, thread};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use tasks_store::{Address, NewTask, Tasks, set_up_sqlite};
use tempfile::TempDir;

fn connect(folder: &TempDir) -> SqliteConnection {
    let path = folder.path().join("tasks.db");
    let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
    set_up_sqlite(&mut connection).unwrap();
    connection
}

/// A connection to a new file with the table.
fn tasks(folder: &TempDir) -> SqliteConnection {
    let mut connection = connect(folder);
    connection
        .batch_execute(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE tasks (
                 id integer PRIMARY KEY AUTOINCREMENT NOT NULL,
                 name text NOT NULL,
                 done boolean NOT NULL
             )",
        )
        .unwrap();
    connection
}

fn task(name: &str, done: bool) -> NewTask {
    NewTask {
        name: name.into(),
        done,
    }
}

#[test]
fn a_task_is_created_found_updated_and_deleted() {
    let folder = TempDir::new().unwrap();
    let mut tasks = tasks(&folder);
    let created = tasks.create(&task("call \"Zoë\"", false), true).unwrap();
    assert_eq!(
        serde_json::to_string(&created).unwrap(),
        r#"{"id":1,"name":"call \"Zoë\"","done":false}"#
    );
    assert_eq!(tasks.find(1, true).unwrap(), Some(created));
    let updated = tasks
        .update(1, &task("called", true), true)
        .unwrap()
        .unwrap();
    assert_eq!((updated.name.as_str(), updated.done), ("called", true));
    assert_eq!(tasks.find(1, true).unwrap(), Some(updated));
    assert!(tasks.delete(1, true).unwrap());
}

#[test]
fn what_is_not_there_is_neither_found_nor_changed() {
    let folder = TempDir::new().unwrap();
    let mut tasks = tasks(&folder);
    assert_eq!(tasks.find(7, true).unwrap(), None);
    assert_eq!(tasks.update(7, &task("late", true), true).unwrap(), None);
    assert!(!tasks.delete(7, true).unwrap());
}

#[test]
fn writers_wait_for_each_other() {
    let folder = TempDir::new().unwrap();
    drop(tasks(&folder));
    let ids: BTreeSet<i32> = thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut tasks = connect(&folder);
                    let new = task("one of many", false);
                    let create = |_| tasks.create(&new, true).unwrap().id;
                    (0..25).map(create).collect::<Vec<_>>()
                })
            })
            .collect();
        let ids = writers.into_iter().map(|writer| writer.join().unwrap());
        ids.flatten().collect()
    });
    assert_eq!(ids, (1..=200).collect());
}

#[test]
fn an_address_of_another_kind_is_refused_without_being_repeated() {
    for url in [
        "mysql://user:secret@host/db",
        "sqlite://file.db",
        "tasks.db",
    ] {
        let error = url.parse::<Address>().err().unwrap().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
