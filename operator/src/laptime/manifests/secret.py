"""The credentials of a run's database and services, made anew for every run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

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
    data = {
        "username": USER,
        "password": password,
        "userlist.txt": f'"{USER}" "{password}"\n',
    }
    name = secret_name(ctx)
    return _secret(ctx, Component.POSTGRES, name, data, [password], config_map, uid)


def services_secret_name(ctx: RunContext) -> str:
    """Return the name of the Secret with the passwords of services, as nobody else's by chance."""
    return ctx.object_name("services", content_hash(ctx.uid)[:8])


def services_secret(
    ctx: RunContext, passwords: Mapping[str, str], config_map: str, uid: str
) -> Manifest:
    """Return the Secret with a password for each service that has one, by the service's name.

    It belongs to a ConfigMap of the run, as that of the database does.

    Raises:
        ValueError: a password is too short or has characters that a URL would not keep.
    """
    name, every = services_secret_name(ctx), list(passwords.values())
    return _secret(ctx, Component.SERVICES, name, passwords, every, config_map, uid)


def _secret(
    ctx: RunContext,
    component: Component,
    name: str,
    data: Mapping[str, str],
    passwords: Iterable[str],
    config_map: str,
    uid: str,
) -> Manifest:
    if not all(map(_PASSWORD.fullmatch, passwords)):
        raise ValueError("the password must be 16 to 128 letters, digits, '-' and '_'")
    secret = ctx.manifest(
        "v1", "Secret", name, ctx.labels(component),
        type="Opaque", immutable=True, stringData=dict(data),
    )  # fmt: skip
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
