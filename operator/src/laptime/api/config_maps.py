"""A text that stands in a ConfigMap beside the resource that names it."""

from __future__ import annotations

from pydantic import Field

from laptime.api.base import Model, rule, rules


class ConfigMapKey(Model):
    """A key of a ConfigMap in the namespace of the scenario."""

    name: str = Field(
        description="Name of the ConfigMap.",
        json_schema_extra=rules(
            rule(
                "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                "must be the name of a ConfigMap in the namespace of the scenario, such as my-sql",
            ),
            minLength=1,
            maxLength=253,
        ),
    )
    key: str = Field(
        description="Key of the text in it.",
        json_schema_extra=rules(
            rule("self.matches('^[-._a-zA-Z0-9]+$')", "must be a key, such as schema.sql"),
            minLength=1,
            maxLength=253,
        ),
    )

    @property
    def no_text(self) -> str:
        """What is said where Kubernetes keeps it as `binaryData`."""
        return (
            f"key {self.key} of ConfigMap {self.name} is no text in UTF-8: convert the file, such "
            "as by iconv -f latin1 -t utf-8, and make the ConfigMap anew"
        )
