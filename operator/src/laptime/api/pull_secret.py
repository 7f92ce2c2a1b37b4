"""With what the images of a run are pulled where their registry asks who it is."""

from __future__ import annotations

from pydantic import Field

from laptime.api.base import Model, rule, rules

MAX_PULL_SECRETS = 8


class PullSecret(Model):
    """A Secret of the run's namespace, which only the kubelet reads."""

    name: str = Field(
        description="Name of the Secret, of type kubernetes.io/dockerconfigjson.",
        json_schema_extra=rules(
            rule(
                "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                "must be the name of a Secret in the namespace of the run, such as regcred",
            ),
            minLength=1,
            maxLength=253,
        ),
    )
