//! Profiles of the CPU, on a port of their own: which functions it was in, and who called them.

use std::{
    fmt::Write as _,
    io::{self, BufRead, BufReader, Read, Write},
    net::{IpAddr, TcpListener, TcpStream},
    num::NonZeroU16,
    thread,
    time::Duration,
};

use pprof::{ProfilerGuardBuilder, Report};

use crate::Failure;

/// Not a multiple of what else ticks in a system, which would be seen always or never.
const SAMPLES_PER_SECOND: i32 = 99;
/// More than anybody waits for a profile.
const MOST_SECONDS: u64 = 600;
/// A longer request is none.
const MOST_REQUEST_BYTES: u64 = 8192;
const CLIENT_PATIENCE: Duration = Duration::from_secs(30);

/// Answers `GET /profile?seconds=N` on a port with what the CPU did in the N seconds from then on.
///
/// It has a thread of its own, which waits: it takes nothing from the requests of the server.
///
/// # Errors
/// When the port is taken.
pub fn listen(host: IpAddr, port: NonZeroU16) -> io::Result<()> {
    let listener = TcpListener::bind((host, port.get()))?;
    thread::Builder::new()
        .name("profile".into())
        .spawn(move || answer_all(&listener))?;
    Ok(())
}

fn answer_all(listener: &TcpListener) {
    for stream in listener.incoming() {
        if let Err(error) = stream.and_then(|mut stream| answer(&mut stream)) {
            tracing::debug!(%error, "the client of a profile went away");
        }
    }
}

fn answer(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_PATIENCE))?;
    stream.set_write_timeout(Some(CLIENT_PATIENCE))?;
    let (status, body) = match seconds_asked(&request_line(stream)?) {
        None => ("404 Not Found", "ask for /profile?seconds=N".into()),
        Some(0) => (
            "400 Bad Request",
            format!("seconds must be 1 to {MOST_SECONDS}"),
        ),
        Some(seconds) => match sample(Duration::from_secs(seconds)) {
            Ok(folded) => ("200 OK", folded),
            Err(error) => ("500 Internal Server Error", error.to_string()),
        },
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The first line of a request; its headers are read and mean nothing.
fn request_line(stream: &TcpStream) -> io::Result<String> {
    let mut reader = BufReader::new(stream.take(MOST_REQUEST_BYTES));
    let (mut first, mut header) = (String::new(), String::new());
    reader.read_line(&mut first)?;
    while reader.read_line(&mut header)? > "\r\n".len() {
        header.clear();
    }
    Ok(first)
}

/// The seconds of `GET /profile?seconds=N HTTP/1.1`: `None` for another request, 0 for a wrong N.
fn seconds_asked(line: &str) -> Option<u64> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let number = query.strip_prefix("seconds=").unwrap_or_default();
    let seconds = number.parse().unwrap_or(0);
    (path == "/profile").then_some(if seconds > MOST_SECONDS { 0 } else { seconds })
}

/// Samples all threads for `length`, as far as they use the CPU.
fn sample(length: Duration) -> Result<String, Failure> {
    // No library is left out: a server spends much of its time in those of the system, and glibc
    // finds unwind tables without a lock since 2.35, so a signal may come at any place.
    let guard = ProfilerGuardBuilder::default()
        .frequency(SAMPLES_PER_SECOND)
        .build()?;
    thread::sleep(length);
    let report = guard.report().build()?;
    Ok(folded(&report))
}

/// Folded stacks: the functions of a stack from the outermost one on, and its number of samples.
fn folded(report: &Report) -> String {
    let mut lines = String::new();
    for (stack, count) in &report.data {
        let frames: Vec<String> = stack
            .frames
            .iter()
            .rev()
            // Of what was inlined in one place the innermost comes first, too.
            .flat_map(|place| place.iter().rev())
            // A semicolon ends a frame; types such as `[u8; 4]` have one of their own.
            .map(|symbol| symbol.name().replace(';', ","))
            .collect();
        writeln!(lines, "{} {count}", frames.join(";")).expect("a String takes everything");
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::{
        hint::black_box,
        sync::atomic::{AtomicBool, Ordering},
    };

    use super::*;

    #[inline(never)]
    fn burn_the_processor(over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            black_box((0..1000_u64).sum::<u64>());
        }
    }

    fn asked(request: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || answer_all(&listener));
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    #[test]
    fn a_profile_names_what_the_processor_did() {
        static OVER: AtomicBool = AtomicBool::new(false);
        let busy = thread::spawn(|| burn_the_processor(&OVER));
        let mut body = String::new();
        // Samples are taken of CPU time, of which a busy machine gives little in a second.
        for seconds in [1, 2, 4, 8, 16, 32] {
            let response = asked(&format!(
                "GET /profile?seconds={seconds} HTTP/1.1\r\nHost: here\r\n\r\n"
            ));
            let (head, found) = response.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            body = found.to_owned();
            if body.contains("burn_the_processor") {
                break;
            }
        }
        OVER.store(true, Ordering::Relaxed);
        busy.join().unwrap();
        assert!(body.contains("burn_the_processor"), "{body}");
        for line in body.lines() {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            assert!(!stack.is_empty() && count.parse::<u64>().unwrap() > 0);
        }
    }

    #[test]
    fn another_request_is_refused() {
        let another = asked("GET /other HTTP/1.1\r\n\r\n");
        assert!(another.starts_with("HTTP/1.1 404 "), "{another}");
        for query in ["", "?seconds=0", "?seconds=x", "?seconds=601"] {
            let response = asked(&format!("GET /profile{query} HTTP/1.1\r\n\r\n"));
            assert!(response.starts_with("HTTP/1.1 400 "), "{query}: {response}");
        }
    }
}
