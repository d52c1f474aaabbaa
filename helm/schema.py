"""The schema of the chart's values: by their defaults, and for `config` by what gateway and vendors know."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args, get_origin

from gateway.config.outline import Entry, outline
from gateway.config.schema import Config, ServiceName
from gateway.config.section import Section
from helm.options import by_vendor, definitions, only_known_vendors
from helm.values import CHART, Value, read_values, walk

SCHEMA: Final = CHART / "values.schema.json"

Json = dict[str, Any]

_TEXTS: Final[Json] = {"type": "object", "additionalProperties": {"type": "string"}}
_STRINGS: Final[Json] = {"type": "array", "items": {"type": "string"}}
_NAME: Final[Json] = {
    "type": "string",
    "pattern": "^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$",
    # What the chart calls objects and pods of its own.
    "not": {"pattern": "^(ca|ca-root|deny|metrics|redis|pipeline(-.*)?|dashboard-.*)$"},
}
_PORTS: Final[Json] = {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}}
_RESOURCES: Final[Json] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "requests": {"type": "object"},
        "limits": {"type": "object"},
        "claims": {"type": "array", "items": {"type": "object"}},
    },
}
_TIME: Final[Json] = {"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){0,4}$"}
_OBJECT: Final[Json] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata"],
    "properties": {"metadata": {"type": "object", "required": ["name"]}},
}
# What Kubernetes itself defines: its API checks what is in there.
_KUBERNETES: Final = {
    "affinity": {"type": "object"},
    "behavior": {"type": "object"},
    "startup": {"type": "object"},
    "liveness": {"type": "object"},
    "readiness": {"type": "object"},
    "issuerRef": {"type": "object"},
}
# Values whose defaults do not say what else they may be, by the end of their path.
_SPECIAL: Final[Mapping[str, Json]] = {
    **_KUBERNETES,
    "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "existingConfig.kind": {"enum": ["ConfigMap", "Secret"]},
    "tls.source": {"enum": ["secrets", "certManager"]},
    "caBundle.kind": {"enum": ["ConfigMap", "Secret"]},
    "monitor.kind": {"enum": ["ServiceMonitor", "PodMonitor"]},
    "audit.volume": {"enum": ["emptyDir", "claim", "existing"]},
    "service.type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
    "podDisruptionBudget.maxUnavailable": {"type": ["integer", "string"]},
    "averageValue": {"type": ["integer", "string"]},
    "autoscaling.cpu": {"type": "integer", "minimum": 0, "maximum": 1000},
    "autoscaling.minReplicas": {"type": "integer", "minimum": 1},
    "autoscaling.maxReplicas": {"type": "integer", "minimum": 1},
    "timeouts.request": _TIME,
    "timeouts.backendRequest": _TIME,
    "extraObjects": {"type": "array", "items": _OBJECT},
    "image.digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
    "runAs.user": {"type": "integer", "minimum": 1},
    "runAs.group": {"type": "integer", "minimum": 1},
    "resources": _RESOURCES,
    "ports": _PORTS,
    "pullSecrets": _STRINGS,
    "ingress.hosts": _STRINGS,
    "hostnames": _STRINGS,
    "sentinel.addresses": _STRINGS,
    "rules.disabled": _STRINGS,
    "loadBalancerSourceRanges": _STRINGS,
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "podLabels": _TEXTS,
    "podAnnotations": _TEXTS,
    "nodeSelector": _TEXTS,
    "secretFiles": _TEXTS,
    "secretNames": _TEXTS,
    "externalSecrets.secrets": _TEXTS,
    "sparkConf": _TEXTS,
    "storageOptions": {"type": "object", "additionalProperties": {"type": "object"}},
    "config": {"$ref": "#/$defs/config"},
}
_RUN: Final[Json] = {
    "type": "array",
    "items": {"enum": [service.value for service in ServiceName]},
    "minItems": 1,
    "uniqueItems": True,
}
# Settings of the gateway that the chart sees to by itself.
_OWN: Final = frozenset(
    {"host", "port", "keys", "metrics", "stateDir", "grace", "drain", "cache.redis", "audit.directory"}
    | {f"services.{key}" for key in ("run", "listen", "addresses", "tls")}
)
_PLAIN: Final[Mapping[Any, Json]] = {
    bool: {"type": "boolean"},
    str: {"type": "string"},
    float: {"type": "number"},
    dict: {"type": "object"},
}


def schema() -> str:
    """Return the text of ``values.schema.json``."""
    values = {value.key: value for value in read_values()}
    properties = {key: _schema_of(value, key) for key, value in values.items()}
    process = properties["processDefaults"]["properties"]
    properties["processes"] = {
        "type": "object",
        "minProperties": 1,
        "propertyNames": _NAME,
        "additionalProperties": {**_section({"run": _RUN, **process}), "required": ["run"]},
    }
    config = _config(Config, "")
    config["properties"]["storages"]["items"]["allOf"] = by_vendor()
    whole = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_section({**properties, "global": {"type": "object"}}),
        "if": only_known_vendors(),
        "then": _storage_options(),
        "$defs": {"config": config, **definitions()},
    }
    return json.dumps(whole, indent=2) + "\n"


def _storage_options() -> Json:
    """Return what holds for storageOptions wherever they are, if the vendors are ours."""
    options = {"properties": {"storageOptions": {"additionalProperties": {"$ref": "#/$defs/anyOptions"}}}}
    every = {"additionalProperties": options}
    return {"properties": {"processDefaults": options, "processes": every, "pipeline": options}}


def _schema_of(value: Value, path: str) -> Json:
    if special := _special(path):
        return special
    if value.children:
        return _section({child.key: _schema_of(child, f"{path}.{child.key}") for child in value.children})
    return _by_default(value.default)


def _special(path: str) -> Json | None:
    parts = path.split(".")
    ends = (".".join(parts[number:]) for number in range(len(parts)))
    return next((_SPECIAL[end] for end in ends if end in _SPECIAL), None)


def _by_default(default: Any) -> Json:
    if isinstance(default, bool):
        return {"type": "boolean"}
    if isinstance(default, int):
        return {"type": "integer", "minimum": 0}
    if isinstance(default, list):
        # Of an empty one nothing is known: those of texts are special cases, all others are of objects.
        items = {type(item) for item in default}
        return _STRINGS if items == {str} else {"type": "array", "items": {"type": "object"}}
    if isinstance(default, dict):
        return _section({key: _by_default(inner) for key, inner in default.items()})
    return {"type": "string"}


def _section(properties: Json) -> Json:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _config(section: type[Section], above: str) -> Json:
    entries = {entry.key: entry for entry in outline(section).values() if f"{above}{entry.key}" not in _OWN}
    names = {field.alias or name: field for name, field in section.model_fields.items()}
    return _section({key: _entry(entry, names[key], f"{above}{key}.") for key, entry in entries.items()})


def _entry(entry: Entry, field: Any, above: str) -> Json:
    inner = _leaf(field.annotation) if entry.section is None else _config(entry.section, above)
    if entry.section is not None and entry.is_list:
        return {"type": "array", "items": inner}
    return inner


def _leaf(annotation: Any) -> Json:
    """Return what is known of a plain setting; the gateway itself checks the rest at its start."""
    if get_origin(annotation) is Literal:
        return {"enum": list(get_args(annotation))}
    return dict(_PLAIN.get(annotation, {}))


def undescribed() -> Iterable[str]:
    """Return special cases that are about no value."""
    paths = [path for path, _ in walk(read_values())]
    return sorted(end for end in _SPECIAL if not any(f".{path}".endswith(f".{end}") for path in paths))
