"""The question on which schema a database is: one text for whoever checks and whoever measures.

The answer stands for what is defined in the schemas of the user, by names and definitions: two
databases that were made alike have the same, whatever order they were made in.

Left out is what is no definition (rows, statistics, last values of sequences), who owns or may read
what (that slows nothing down, and what is forbidden fails in the open), what extensions bring
themselves (their versions say it), tables that inherit from others (partitions are made by time,
and each has what its parent has), and of the options of columns those that a Postgres writes by
itself: some count in them how often a table was made.
"""

from __future__ import annotations

import hashlib

# A server may have thousands of tables, and each question here is asked before something is
# measured: what takes longer is not known. Nor does it wait long for a table that somebody alters:
# other generators wait meanwhile. Names are told with their schemas, whatever the search path of
# the database is.
_SETTINGS = (
    "SET LOCAL statement_timeout = '5s'; SET LOCAL lock_timeout = '1s'; SET LOCAL jit = off; "
    "SET LOCAL search_path = pg_catalog;"
)

_DEFINITIONS = """
WITH e AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e'),
n AS (
  SELECT oid FROM pg_namespace
  WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
  AND oid NOT IN (SELECT objid FROM e WHERE classid = 'pg_namespace'::regclass)
),
t AS (
  SELECT c.* FROM pg_class c
  WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'c') AND relnamespace IN (SELECT oid FROM n)
  AND oid NOT IN (SELECT objid FROM e WHERE classid = 'pg_class'::regclass)
  AND oid NOT IN (SELECT inhrelid FROM pg_inherits)
),
d(line) AS (
  SELECT ROW('table', t.oid::regclass, relkind, relpersistence, relrowsecurity,
    relforcerowsecurity, reloptions, amname, pg_get_partkeydef(t.oid),
    (SELECT o.reloptions FROM pg_class o WHERE o.oid = t.reltoastrelid))::text
  FROM t LEFT JOIN pg_am a ON a.oid = relam
  UNION ALL
  SELECT ROW('column', t.oid::regclass, attname, format_type(atttypid, atttypmod), attnotnull,
    attcollation::regcollation, attidentity, attgenerated, attstorage,
    attcompression,
    (SELECT array_agg(one ORDER BY one) FROM unnest(attoptions) one WHERE one ~ '^n_distinct'),
    coalesce(attstattarget, -1), pg_get_expr(adbin, adrelid))::text
  FROM t JOIN pg_attribute ON attrelid = t.oid AND attnum > 0 AND NOT attisdropped
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  UNION ALL
  SELECT ROW('index', pg_get_indexdef(indexrelid), indisvalid, indisready)::text
  FROM t JOIN pg_index ON indrelid = t.oid
  UNION ALL
  SELECT ROW('constraint', conrelid::regclass, contypid::regtype, conname,
    pg_get_constraintdef(c.oid))::text
  FROM pg_constraint c
  WHERE connamespace IN (SELECT oid FROM n) AND conparentid = 0
  AND (conrelid = 0 OR conrelid IN (SELECT oid FROM t))
  UNION ALL
  SELECT ROW('trigger', pg_get_triggerdef(g.oid), tgenabled)::text
  FROM t JOIN pg_trigger g ON tgrelid = t.oid AND NOT tgisinternal
  UNION ALL
  SELECT ROW('rule', pg_get_ruledef(r.oid), ev_enabled)::text
  FROM t JOIN pg_rewrite r ON ev_class = t.oid
  UNION ALL
  SELECT ROW('policy', t.oid::regclass, polname, polcmd, polpermissive,
    pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))::text
  FROM t JOIN pg_policy ON polrelid = t.oid
  UNION ALL
  SELECT ROW('statistics', pg_get_statisticsobjdef(s.oid))::text
  FROM t JOIN pg_statistic_ext s ON stxrelid = t.oid
  UNION ALL
  SELECT ROW('function', p.oid::regprocedure,
    CASE WHEN prokind <> 'a' THEN pg_get_functiondef(p.oid) END)::text
  FROM pg_proc p
  WHERE pronamespace IN (SELECT oid FROM n)
  AND p.oid NOT IN (SELECT objid FROM e WHERE classid = 'pg_proc'::regclass)
  UNION ALL
  SELECT ROW('enum', enumtypid::regtype, array_agg(enumlabel ORDER BY enumsortorder))::text
  FROM pg_enum JOIN pg_type y ON y.oid = enumtypid
  WHERE typnamespace IN (SELECT oid FROM n) GROUP BY enumtypid
  UNION ALL
  SELECT ROW('domain', oid::regtype, format_type(typbasetype, typtypmod), typnotnull,
    typdefault)::text
  FROM pg_type WHERE typtype = 'd' AND typnamespace IN (SELECT oid FROM n)
  UNION ALL
  SELECT ROW('sequence', seqrelid::regclass, seqtypid::regtype, seqincrement, seqcache,
    seqcycle)::text
  FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid
  WHERE relnamespace IN (SELECT oid FROM n)
  UNION ALL
  SELECT ROW('extension', extname, extversion)::text FROM pg_extension
  UNION ALL
  SELECT ROW('setting', setrole::regrole, one)::text
  FROM pg_db_role_setting, unnest(setconfig) one
  WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
)
"""

_ASKED = " ".join(_DEFINITIONS.split())
# Two versions of Laptime that ask otherwise are answered otherwise: what they say is not compared.
_QUESTION = hashlib.sha256(_ASKED.encode()).hexdigest()[:8]

SCHEMA_QUERY = (
    f"{_SETTINGS} {_ASKED} SELECT '{_QUESTION}-' || "
    """md5(coalesce(string_agg(line, ';' ORDER BY line COLLATE "C"), '')) FROM d"""
)
"""Several statements for one message to Postgres, which makes them one transaction. The last one
has one row with one text: the question, a hyphen, and what stands for the definitions."""
