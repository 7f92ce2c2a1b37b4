"""A Service of the namespace that is there already: driven and checked, and not deployed."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from laptime.api.base import Model, rule, rules

HEALTH_PATH = "/healthz"
"""What a server answers with 200 when it serves, unless the run says otherwise."""
AUTHORIZATION_KEY = "laptime-authorization"
"""Of a Secret. Nobody has it by chance: what a run can send was meant to be sent by runs."""
_NAME = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_KEY = "^[-._a-zA-Z0-9]+$"


class ServiceTls(Model):
    """Whom to trust: the certificates in a ConfigMap, and no others."""

    config_map: str = Field(
        description="Name of the ConfigMap, in the namespace of the run.",
        json_schema_extra=rules(
            rule(
                "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                "must be the name of a ConfigMap in the namespace of the run, such as shop-ca",
            ),
            minLength=1,
            maxLength=253,
        ),
    )
    key: str = Field(
        "ca.crt",
        description="Key of the certificates (PEM) in it.",
        json_schema_extra=rules(
            rule(
                f"self.matches('{_KEY}') && !self.startsWith('..') && self != '.'",
                "must be a key of the ConfigMap, such as ca.crt",
            ),
            minLength=1,
            maxLength=253,
        ),
    )


class Service(Model):
    """A Service of the run's namespace, and how it is spoken to."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.port) != has(self.portName)",
                "write either port (a number) or portName (a name that the Service has for it), "
                "exactly one of the two",
            )
        )
    )
    name: str = Field(
        description="Name of the Service, in the namespace of the run.",
        json_schema_extra=rules(
            rule(
                f"self.matches('{_NAME}')",
                "must be the name alone of a Service in the namespace of the run, such as shop",
            ),
            minLength=1,
            maxLength=63,
        ),
    )
    port: int | None = Field(None, description="Its port, as a number.", ge=1, le=65535)
    port_name: str | None = Field(
        None,
        description="Its port, by the name that the Service has for it.",
        json_schema_extra=rules(
            rule(
                f"self.matches('{_NAME}')", "must be the name of a port of the Service, such as web"
            ),
            minLength=1,
            maxLength=63,
        ),
    )
    health_path: str = Field(
        HEALTH_PATH,
        description="What answers 200 when it serves; it is asked before every check and trial.",
        json_schema_extra=rules(
            rule(
                "self.matches('^/[!-~]*$') && !self.startsWith('//') && !self.contains('#')",
                "must be a path that begins with one /, of printable ASCII without spaces, such as "
                "/ready",
            ),
            minLength=1,
            maxLength=256,
        ),
    )
    tls: ServiceTls | None = Field(
        None,
        description="It speaks TLS, as <name>.<namespace>.svc; left out: plain HTTP.",
    )
    credentials: str | None = Field(
        None,
        description="Name of a Secret in the namespace of the run. What its key "
        "laptime-authorization has, each request and check has as its header Authorization.",
        json_schema_extra=rules(
            rule(
                "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                "must be the name of a Secret in the namespace of the run, such as shop-client",
            ),
            minLength=1,
            maxLength=253,
        ),
    )
