"""Times that are the same for every Python server, in seconds."""

# For the requests in flight when the server is asked to stop.
GRACEFUL_SHUTDOWN_SECONDS = 4
# Longer than the idle time of a proxy's connection, so that the proxy closes it first.
KEEP_ALIVE_SECONDS = 75
# A worker that is starved of CPU by the others is slow, not broken.
WORKER_SILENCE_SECONDS = 60
