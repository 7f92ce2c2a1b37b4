#!/bin/sh
# Makes the database cluster that entrypoint.sh copies: superuser and database `laptime`, no
# password yet, pg_stat_statements installed. Runs once, when the image is built.
# usage: make-template.sh DIRECTORY
set -eu
template=$1

initdb --pgdata="$template" --username=laptime --encoding=UTF8 \
    --locale-provider=builtin --builtin-locale=C.UTF-8 --locale=C \
    --auth-local=trust --auth-host=scram-sha-256 --no-sync --no-instructions
# The configuration lives in /etc/postgresql; initdb's copies would only mislead.
echo "include '/etc/postgresql/postgresql.conf'" >"$template/postgresql.conf"
rm "$template/pg_hba.conf"

# Single-user mode needs no socket and no waiting. The last statements end the WAL neatly.
postgres --single -D "$template" -c fsync=off -c log_checkpoints=off postgres >/dev/null <<'SQL'
CREATE DATABASE laptime STRATEGY wal_log
SQL
postgres --single -D "$template" -c fsync=off -c log_checkpoints=off laptime >/dev/null <<'SQL'
CREATE EXTENSION pg_stat_statements
SQL
test -d "$template/base"
