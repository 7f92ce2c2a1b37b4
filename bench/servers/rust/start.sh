# Starts SERVER with the settings that its framework reads for what the contract says
# (docs/servers.md).
set -eu

case "$SERVER" in
axum-*)
    export TOKIO_WORKER_THREADS="$WORKERS"
    ;;
rocket-diesel)
    export ROCKET_ADDRESS=0.0.0.0 ROCKET_PORT="$PORT" ROCKET_WORKERS="$WORKERS"
    # Otherwise it logs each request.
    export ROCKET_LOG_LEVEL=critical
    export ROCKET_DATABASES="{tasks={url=\"$DATABASE_URL\",pool_size=$DATABASE_CONNECTIONS}}"
    ;;
esac
exec "$(dirname "$0")/$SERVER"
