#!/bin/sh
# Makes the database cluster that entrypoint.sh copies: the database `laptime` and its owner, the
# role `laptime`, without a password yet; pg_stat_statements installed. The superuser, `postgres`,
# never gets a password: it can only be reached over the socket in the container. Runs once, when
# the image is built.
# usage: make-template.sh DIRECTORY
set -eu
template=$1

initdb --pgdata="$template" --username=postgres --encoding=UTF8 \
    --locale-provider=builtin --builtin-locale=C.UTF-8 --locale=C \
    --auth-local=trust --auth-host=scram-sha-256 --allow-group-access --no-sync --no-instructions
# The configuration lives in /etc/postgresql; initdb's copies would only mislead.
echo "include '/etc/postgresql/postgresql.conf'" >"$template/postgresql.conf"
rm "$template/pg_hba.conf"

# Single-user mode needs no socket and no waiting; a line is a statement. What is granted is what
# happens before each trial, and that the exporter does not count itself: statistics of this very
# database, and nothing that leads out of it.
postgres --single -D "$template" -c fsync=off -c log_checkpoints=off postgres >/dev/null <<'SQL'
CREATE ROLE laptime LOGIN
GRANT pg_checkpoint TO laptime
CREATE DATABASE laptime OWNER laptime STRATEGY wal_log
SQL
postgres --single -D "$template" -c fsync=off -c log_checkpoints=off laptime >/dev/null <<'SQL'
CREATE EXTENSION pg_stat_statements
GRANT EXECUTE ON FUNCTION pg_stat_reset() TO laptime
GRANT EXECUTE ON FUNCTION pg_stat_statements_reset(oid, oid, bigint, boolean) TO laptime
GRANT SET ON PARAMETER pg_stat_statements.track TO laptime
SQL
test -d "$template/base"
