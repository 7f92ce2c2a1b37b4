"""The credentials of a run's database, made anew for every run."""

from __future__ import annotations

import re

from laptime.manifests.context import Component, Manifest, RunContext, content_hash
from laptime.manifests.pods import secret_variable

USER = "laptime"
DATABASE = "laptime"

# The password stands in a URL, in PgBouncer's list of users and in SQL: letters, digits, '-' and
# '_' mean the same in all of them. `secrets.token_urlsafe` gives nothing else.
_PASSWORD = re.compile(r"[A-Za-z0-9_-]{16,128}")


def secret_name(ctx: RunContext) -> str:
    """Return the name of the Secret, which nobody else's has by chance.

    The operator may not read Secrets, so it could not tell whose one of a simpler name is.
    """
    return ctx.object_name("database", content_hash(ctx.uid)[:8])


def database_secret(ctx: RunContext, password: str, config_map: str, uid: str) -> Manifest:
    """Return the Secret with the keys username, password and userlist.txt (for PgBouncer).

    PgBouncer needs the plain password: it logs in to Postgres with it by SCRAM. The Secret belongs
    to the ConfigMap of Postgres with this name and uid, and goes with it: the operator deletes no
    Secret, since it could only do so by its name.

    Raises:
        ValueError: the password is too short or has characters that a URL would not keep.
    """
    if not _PASSWORD.fullmatch(password):
        raise ValueError("the password must be 16 to 128 letters, digits, '-' and '_'")
    secret = ctx.manifest(
        "v1",
        "Secret",
        secret_name(ctx),
        ctx.labels(Component.POSTGRES),
        type="Opaque",
        immutable=True,
        stringData={
            "username": USER,
            "password": password,
            "userlist.txt": f'"{USER}" "{password}"\n',
        },
    )
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": config_map, "uid": uid}
    secret["metadata"]["ownerReferences"] = [owner]
    return secret


def database_variables(ctx: RunContext, host: str, port: int) -> list[Manifest]:
    """Return DATABASE_URL for a container, put together by the kubelet: no manifest shows it."""
    return [
        # Before the variable whose value refers to it.
        secret_variable("DATABASE_PASSWORD", secret_name(ctx), "password"),
        {
            "name": "DATABASE_URL",
            "value": f"postgresql://{USER}:$(DATABASE_PASSWORD)@{host}:{port}/{DATABASE}",
        },
    ]
