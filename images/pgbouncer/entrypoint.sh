#!/bin/sh
# Starts PgBouncer, which takes as many clients as it may open files: many nodes let a process open
# 1,024 until it asks for more, and it asks for none.
set -eu

enough=65536
hard=$(ulimit -Hn)
[ "$hard" != unlimited ] && [ "$hard" -lt "$enough" ] && enough=$hard
soft=$(ulimit -Sn)
[ "$soft" = unlimited ] || [ "$soft" -ge "$enough" ] || ulimit -Sn "$enough"

exec pgbouncer "$@"
