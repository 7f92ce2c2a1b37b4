"""The words and colours for the values that runs and rows have as labels."""

from __future__ import annotations

STATES = {
    "Queued": ("Queued", "text"),
    "Deploying": ("Deploying", "purple"),
    "Verifying": ("Verifying", "#0b8f9c"),
    "Running": ("Running", "blue"),
    "Finishing": ("Finishing", "#c2569b"),
    "Suspending": ("Suspending", "#a0704a"),
    "Suspended": ("Suspended", "#7d8590"),
    "Succeeded": ("Succeeded", "green"),
    "Failed": ("Failed", "red"),
    "Cancelled": ("Cancelled", "yellow"),
}
"""Each has a colour of its own, for words and for lines. Those without a name can be seen on white
and on black, as Grafana's own can."""

VALIDITIES = {
    "valid": ("valid", "green"),
    "doubtful": ("doubtful", "orange"),
    "invalid": ("invalid", "red"),
}

ISOLATION = {
    "quiet": ("quiet", "green"),
    "notKnown": ("not known", "text"),
    "shared": ("shared", "blue"),
    "disturbed": ("disturbed", "orange"),
}

OUTCOMES = {"Measured": ("Measured", "blue"), "Failed": ("Failed", "red")}

OBJECTIVES = {
    "met": ("met", "green"),
    "missed": ("missed", "red"),
    "notKnown": ("not known", "orange"),
}

PERCENTILES = {
    "0.5": ("p50", "text"),
    "0.9": ("p90", "text"),
    "0.99": ("p99", "text"),
    "0.999": ("p99.9", "text"),
}

UNREACHED = {"Infinity": ("failed", "red")}
"""Of a percentile among the requests without a right answer, as the report calls it. Prometheus has
+Inf for it, which is another word in a browser."""

UNBOUNDED = {"Infinity": ("none", "text")}
"""Of the high end of an interval where a search found no upper one."""

CAUSES = {
    "serverCpu": ("CPU of the server", "blue"),
    "serverConcurrency": ("concurrency of the server", "blue"),
    "unevenWorkers": ("one full worker of several", "blue"),
    "serverMemory": ("memory of the server", "blue"),
    "serverDisk": ("disk of the server", "blue"),
    "pgbouncerPool": ("pool of PgBouncer", "purple"),
    "databaseConnections": ("connections to the database", "purple"),
    "postgresCpu": ("CPU of Postgres", "purple"),
    "postgresLocks": ("locks in Postgres", "purple"),
    "postgresIo": ("files of Postgres (I/O)", "purple"),
    "postgresWal": ("write-ahead log of Postgres", "purple"),
    "pgbouncerCpu": ("CPU of PgBouncer", "purple"),
    "haproxyCap": ("connection limit of HAProxy", "orange"),
    "haproxyCpu": ("CPU of HAProxy", "orange"),
    "upstream": ("upstream", "orange"),
    "serviceCpu": ("CPU of a service", "orange"),
    "network": ("network between the nodes", "red"),
    "generator": ("load generator", "red"),
    "node": ("node", "red"),
    "offeredLoad": ("offered load: send more", "green"),
    "unknown": ("unknown", "text"),
}
