//! The store on a file of SQLite; Postgres is tested with the whole server.

use std::{collections::BTreeSet, thread};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use tasks_store::{NewTask, TaskStore};
use tempfile::TempDir;

fn store(folder: &TempDir, connections: u32) -> TaskStore {
    let path = folder.path().join("tasks.db");
    let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
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
    TaskStore::new(&format!("sqlite://{}", path.display()), connections, true).unwrap()
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
    let store = store(&folder, 1);
    let created = store.create(&task("call \"Zoë\"", false)).unwrap();
    assert_eq!(
        serde_json::to_string(&created).unwrap(),
        r#"{"id":1,"name":"call \"Zoë\"","done":false}"#
    );
    assert_eq!(store.find(1).unwrap(), Some(created));
    let updated = store.update(1, &task("called", true)).unwrap().unwrap();
    assert_eq!((updated.name.as_str(), updated.done), ("called", true));
    assert_eq!(store.find(1).unwrap(), Some(updated));
    assert!(store.delete(1).unwrap());
}

#[test]
fn what_is_not_there_is_neither_found_nor_changed() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder, 1);
    assert_eq!(store.find(7).unwrap(), None);
    assert_eq!(store.update(7, &task("late", true)).unwrap(), None);
    assert!(!store.delete(7).unwrap());
}

#[test]
fn writers_wait_for_each_other() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder, 4);
    let ids: BTreeSet<i32> = thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let create = |_| store.create(&task("one of many", false)).unwrap().id;
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
        let error = TaskStore::new(url, 1, true).err().unwrap().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
