//! How many files the process may open, connections among them.

use rustix::{
    io,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// The largest load has 20,000 connections.
const ENOUGH: u64 = 65_536;

/// Lets the process open as many files as it may need. Many nodes let it open 1,024 until it asks
/// for more, as servers in Go do by themselves.
pub fn raise_limit() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(ENOUGH, |hard| hard.min(ENOUGH));
    if limit.current.is_none_or(|soft| soft >= most) {
        return Ok(());
    }
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(most),
            ..limit
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_open_more_files_than_a_node_lets_it_at_first() {
        let before = getrlimit(Resource::Nofile);
        let few = Rlimit {
            current: Some(256),
            ..before
        };
        setrlimit(Resource::Nofile, few).unwrap();
        raise_limit().unwrap();
        let after = getrlimit(Resource::Nofile);
        assert_eq!(after.maximum, before.maximum);
        assert_eq!(
            after.current,
            Some(before.maximum.unwrap_or(ENOUGH).min(ENOUGH))
        );
    }
}
