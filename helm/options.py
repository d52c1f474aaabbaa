"""The schema of vendors' options: their names and types, from the vendors' own models.

An entry of ``storageOptions`` has some of a storage's options only, so that none is required here: the
gateway itself says at its start what is missing, and whatever else is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vendors.aws.config import AwsOptions
from vendors.azure.config import AzureOptions
from vendors.gcp.config import GcpOptions
from vendors.options import Options
from vendors.r2.config import R2Options
from vendors.s3.config import S3Options

MODELS: Final[Mapping[str, type[Options]]] = {
    "aws": AwsOptions,
    "azure": AzureOptions,
    "gcp": GcpOptions,
    "r2": R2Options,
    "s3": S3Options,
}
# It has none.
_WITHOUT_OPTIONS: Final = ("local",)
# What says which names and types there are.
_KEPT: Final = frozenset(
    {"additionalProperties", "properties", "type", "anyOf", "items", "enum", "const", "$ref"}
)

Json = dict[str, Any]


def definitions() -> Json:
    """Return the schemas to refer to: of each vendor's options, of their parts, and of any vendor's."""
    found: Json = {}
    for vendor, model in MODELS.items():
        whole = model.model_json_schema(ref_template=f"#/$defs/{vendor}.{{model}}")
        parts = whole.pop("$defs", {})
        found[vendor] = _names_and_types(whole)
        found.update({f"{vendor}.{name}": _names_and_types(part) for name, part in parts.items()})
    found["anyOptions"] = {"anyOf": [{"$ref": f"#/$defs/{vendor}"} for vendor in MODELS]}
    return found


def by_vendor() -> list[Json]:
    """Return what holds for a storage beside the rest: its options are its vendor's."""
    return [
        {
            "if": {"required": ["vendor"], "properties": {"vendor": {"const": vendor}}},
            "then": {"properties": {"options": {"$ref": f"#/$defs/{vendor}"}}},
        }
        for vendor in MODELS
    ]


def only_known_vendors() -> Json:
    """Return the condition that all storages are of our vendors: options of others are not known here."""
    storages = {"items": {"properties": {"vendor": {"enum": [*MODELS, *_WITHOUT_OPTIONS]}}}}
    return {"properties": {"config": {"properties": {"storages": storages}}}}


def _names_and_types(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    # One of several kinds, and with no part required more than one may fit.
    given = {"anyOf" if key == "oneOf" else key: inner for key, inner in schema.items()}
    return {key: _inside(key, inner) for key, inner in given.items() if key in _KEPT}


def _inside(key: str, inner: Any) -> Any:
    if key == "properties":
        return {name: _names_and_types(part) for name, part in inner.items()}
    if key == "anyOf":
        return [_names_and_types(part) for part in inner]
    return _names_and_types(inner)
