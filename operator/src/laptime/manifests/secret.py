"""The credentials of a run's database and services, made anew for every run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from laptime.manifests.context import RunContext
from laptime.manifests.objects import SECRET_ANNOTATION, Component, Manifest, content_hash
from laptime.manifests.pods import secret_variable, variable
from laptime.plan.told import DATABASE_PARTS

USER = "laptime"
ADMIN = "laptime_admin"
"""Of PgBouncer alone: no server knows its password."""
CONSOLE_KEY = "console"

# The password stands in a URL, in PgBouncer's list of users and in SQL: letters, digits, '-' and
# '_' mean the same in all of them. `secrets.token_urlsafe` gives nothing else.
_PASSWORD = re.compile(r"[A-Za-z0-9_-]{16,128}")


def secret_name(ctx: RunContext) -> str:
    """Return the name of the Secret, which nobody else's has by chance or on purpose.

    The operator may not read Secrets, so it could not tell whose one of a simpler name is. That
    name is the owner's, by its uid, which nobody knows before the owner is there.
    """
    return _name(ctx, "database", postgres_owner(ctx))


def postgres_owner(ctx: RunContext) -> str:
    """Return the name of the ConfigMap that the database's Secret goes with: that of Postgres."""
    return ctx.object_name("postgres")


def services_owner(ctx: RunContext) -> str:
    """Return the name of the ConfigMap that the passwords of services go with."""
    return ctx.object_name("services")


def secret_owners(ctx: RunContext) -> set[str]:
    """Return the names of the ConfigMaps that the Secrets of a run go with."""
    found = {postgres_owner(ctx)} if ctx.spec.topology.postgres is not None else set()
    if any(one.password for one in ctx.scenario.services):
        found.add(services_owner(ctx))
    return found


def owning(config_map: Manifest) -> Manifest:
    """Return a ConfigMap as one that a Secret is called by."""
    config_map["metadata"]["annotations"][SECRET_ANNOTATION] = "true"
    return config_map


def _name(ctx: RunContext, what: str, owner: str) -> str:
    # A run that began under the version before has a Secret that is called by the run's uid.
    return ctx.object_name(what, content_hash(ctx.secret_owners.get(owner, ctx.uid))[:8])


def database_secret(
    ctx: RunContext, password: str, admin_password: str, console: str, config_map: str, uid: str
) -> Manifest:
    """Return the Secret with the keys username, password, userlist.txt (for PgBouncer), console.

    The last one is the URL by which PgBouncer's admin reaches its `console` (host, port, database).
    PgBouncer needs the plain password: it logs in to Postgres with it by SCRAM. The Secret belongs
    to the ConfigMap of Postgres with this name and uid, and goes with it: the operator deletes no
    Secret, since it could only do so by its name.

    Raises:
        ValueError: the password is too short or has characters that a URL would not keep.
    """
    data = {
        "username": USER,
        "password": password,
        "userlist.txt": f'"{USER}" "{password}"\n"{ADMIN}" "{admin_password}"\n',
        CONSOLE_KEY: f"postgresql://{ADMIN}:{admin_password}@{console}",
    }
    name = secret_name(ctx)
    return _secret(ctx, Component.POSTGRES, name, data, [password, admin_password], config_map, uid)


def services_secret_name(ctx: RunContext) -> str:
    """Return the name of the Secret with the passwords of services, as that of the database's."""
    return _name(ctx, "services", services_owner(ctx))


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


def database_variables(
    ctx: RunContext, host: str, port: int, database: str, name: str = "DATABASE_URL"
) -> list[Manifest]:
    """Return a database's URL for a container, put together by the kubelet: no manifest shows it.

    `name` is that of the variable.
    """
    return [
        # Before the variable whose value refers to it.
        secret_variable("DATABASE_PASSWORD", secret_name(ctx), "password"),
        database_url(name, host, port, database),
    ]


def database_parts(host: str, port: int, database: str) -> list[Manifest]:
    """Return what DATABASE_URL is made of, but for the password, for a server's own words."""
    values = (host, str(port), USER, database)
    return [variable(*one) for one in zip(DATABASE_PARTS, values, strict=True)]


def database_url(name: str, host: str, port: int, database: str) -> Manifest:
    """Return a variable with a database's URL, for a container that has DATABASE_PASSWORD."""
    url = f"postgresql://{USER}:$(DATABASE_PASSWORD)@{host}:{port}/{database}"
    return {"name": name, "value": url}
