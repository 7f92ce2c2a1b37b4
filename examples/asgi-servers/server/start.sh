#!/bin/sh
# All alike, as far as they can: uvloop where a server takes it, no access log.
set -eu
port="${PORT:-8080}" workers="${WORKERS:-1}"
# A pod of an IPv6 cluster has no other address.
case "${POD_IP:-}" in
    *:*) host=:: bind="[::]:$port" ;;
    *) host=0.0.0.0 bind="0.0.0.0:$port" ;;
esac
case "${SERVER:-}" in
    uvicorn) exec uvicorn --host "$host" --port "$port" --workers "$workers" --no-access-log pages:app ;;
    granian) exec granian --interface asgi --host "$host" --port "$port" --workers "$workers" --no-access-log pages:app ;;
    hypercorn) exec hypercorn --bind "$bind" --workers "$workers" --worker-class uvloop pages:app ;;
    daphne)
        [ "$workers" = 1 ] || { echo "daphne has one process: leave workers out" >&2; exit 64; }
        exec daphne --bind "$host" --port "$port" --verbosity 0 pages:app
        ;;
    *) echo "SERVER is '${SERVER:-}': write uvicorn, granian, hypercorn or daphne" >&2; exit 64 ;;
esac
