"""An OpenAPI 3 document as a scenario: requests from its examples, checks from its schemas."""

from laptime.cli.init.openapi.translation import is_openapi, translated

__all__ = ["is_openapi", "translated"]
