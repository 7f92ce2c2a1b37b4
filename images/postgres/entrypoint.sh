#!/bin/sh
# Starts Postgres. An empty data directory is first filled from the template, given its password
# (POSTGRES_PASSWORD), the extensions of /etc/laptime/extensions.sql and the SQL files of
# /etc/laptime/init.d; TCP opens only after that, so a server that answers on port 5432 is complete.
# Instead of one of them a file of its name in /laptime-files is run, which was copied out of an image.
# At the end /etc/laptime/databases.sql, where there is one, makes copies of the database, each for a
# server of its own.
# A directory that exists is used as it is.
set -eu

# Sets the password and runs the init SQL on a server that only this container can reach. The SQL is
# a stranger's: it runs as the owner of the database, and without psql's own commands, since \! is a
# shell. What would allow them again is a key that nobody can know.
# usage: initialise DIRECTORY
initialise() {
    # The port is fixed because the run's settings may name another one. Neither the password nor
    # the seeding belongs into the statement statistics of a run.
    pg_ctl --pgdata="$1" --silent --wait --options="-c listen_addresses='' -c port=5432 \
        -c fsync=off -c log_checkpoints=off -c pg_stat_statements.track=none" start
    # A statement that fails is in the log of the server, as it was written.
    run_sql --username=postgres <<'SQL'
\getenv password POSTGRES_PASSWORD
SET log_min_error_statement = panic;
ALTER ROLE laptime PASSWORD :'password'
SQL
    if [ -e /etc/laptime/extensions.sql ]; then
        run_sql --username=postgres --file=/etc/laptime/extensions.sql
    fi
    key=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
    for file in /etc/laptime/init.d/*.sql; do
        [ -e "$file" ] || continue
        copied=/laptime-files/${file##*/}
        # A link would lead to what is not of that image.
        if [ -f "$copied" ] && [ ! -L "$copied" ]; then
            file=$copied
        fi
        echo "laptime: running $file"
        # A pipe of the same name, which is what psql says of an error beside its line.
        pipe=/tmp/laptime-sql/${file##*/}
        rm -rf /tmp/laptime-sql
        mkdir /tmp/laptime-sql
        mkfifo "$pipe"
        without_own_key "$file" >"$pipe" &
        reader=$!
        run_sql --username=laptime --command="\\restrict $key" --file="$pipe"
        # What could not be read to its end is not all of it.
        wait "$reader"
    done
    if [ -e /etc/laptime/databases.sql ]; then
        # What autovacuum soon does to new rows it would do to no copy, which has no counters of them. The
        # role owns all of the database but what databases share, and each of these is a warning.
        # It tidies up and no more: what the scenario has made of settings or of functions in an index may
        # be in its way, as it is in autovacuum's.
        run_sql --username=laptime --command='SET client_min_messages = error' \
            --command='SET statement_timeout = 0' --command='VACUUM (ANALYZE)' ||
            echo "laptime: VACUUM failed; the database is copied as it is"
        # From elsewhere: what somebody is connected to cannot be copied, and there the scenario's
        # SQL has set nothing for a superuser.
        run_sql --username=postgres --dbname=postgres --file=/etc/laptime/databases.sql
    fi
    pg_ctl --pgdata="$1" --silent --wait --mode=fast stop
    if [ -e /etc/laptime/databases.sql ]; then
        # Copies were made without waiting for the disk: it would write them beside the first trials.
        initdb --sync-only --pgdata="$1" >/dev/null
    fi
}

# Prints a file without the key of its own that a dump has: pg_dump writes \restrict WORD before all else
# but comments and \unrestrict WORD last, since 2025, and psql, restricted already, takes neither. Those
# two lines alone become empty, so that the numbers of lines stay; all else is what it was, and whatever
# it is, psql takes no command of its own in it: it is restricted by a key that is not in the file.
# usage: without_own_key FILE
without_own_key() {
    awk '
        plain { print; next }
        /^\\/ {
            line = $0
            sub(/\r$/, "", line)
            if (word == "" && line ~ /^\\restrict [A-Za-z0-9]+$/) {
                word = substr(line, 11)
                print ""
                next
            }
            if (word != "" && line == "\\unrestrict " word) {
                word = ""
                print ""
                next
            }
        }
        word == "" && !/^(--.*|[ \t\r]*)$/ { plain = 1 }
        { print }
        END {
            if (word != "") {
                print "laptime: the dump is cut off, its last line \\unrestrict is not there" >"/dev/stderr"
                exit 1
            }
        }
    ' "$1"
}

run_sql() {
    psql --host=/tmp --port=5432 --dbname=laptime --no-psqlrc --quiet \
        --set=ON_ERROR_STOP=1 "$@" >/dev/null
}

# /tmp outlives a container that is started again: a killed Postgres leaves its socket's lock there,
# and the process that has its number by now (a probe's) would be taken for it.
rm -f /tmp/.s.PGSQL.*

if [ ! -d "$PGDATA" ]; then
    : "${POSTGRES_PASSWORD:?must be set to the password of the user laptime}"
    # Everything happens beside PGDATA and is renamed at the end: a container that was killed
    # half-way starts over instead of serving half a database.
    fresh=$PGDATA.new
    rm -rf "$fresh"
    cp -R --preserve=mode,timestamps /usr/share/laptime/pgdata "$fresh"
    initialise "$fresh"
    mv "$fresh" "$PGDATA"
fi

unset POSTGRES_PASSWORD
exec postgres -D "$PGDATA" "$@"
