"""Limits that are the same for every Python server; times are in seconds."""

import resource

# For the requests in flight when the server is asked to stop.
GRACEFUL_SHUTDOWN_SECONDS = 4
# Longer than the idle time of a proxy's connection, so that the proxy closes it first.
KEEP_ALIVE_SECONDS = 75
# A worker that is starved of CPU by the others is slow, not broken.
WORKER_SILENCE_SECONDS = 60
# The largest load has 20,000 connections; a process may open so many files, if the node allows it.
OPEN_FILES = 65_536


def raise_open_files() -> None:
    """Let this process and those that it starts open as many files as they may need.

    Many nodes let a process open 1,024 until it asks for more, as servers in Go do by themselves.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
