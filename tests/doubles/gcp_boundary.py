"""Credential access boundaries, from Google's "Restrict a credential's Cloud Storage permissions"."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import celpy
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError

_MOST_RULES = 10
_RESOURCE = re.compile(r"//storage\.googleapis\.com/projects/_/buckets/([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])")
_LIST_PREFIX = "storage.googleapis.com/objectListPrefix"
_RULE_KEYS = frozenset({"availableResource", "availablePermissions", "availabilityCondition"})
_CONDITION_KEYS = frozenset({"expression", "title", "description"})
_METHODS = frozenset({"startsWith", "endsWith", "getAttribute"})
_FIELDS = frozenset({"name", "type", "service"})
_FORBIDDEN_RULES = frozenset(
    {"ident_arg", "member_index", "member_object", "list_lit", "map_lit", "dot_ident"}
)
# An escape that CEL does not have would be read by each implementation in its own way.
_UNKNOWN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\[^abfnrtv\\'\"?`xXuU0-3]")

_READ_FOLDERS = (
    *("storage.folders.get", "storage.folders.list"),
    *("storage.managedFolders.get", "storage.managedFolders.list"),
)
_VIEW = ("storage.objects.get", "storage.objects.list", *_READ_FOLDERS)
ROLES = {
    "roles/storage.objectViewer": frozenset(_VIEW),
    "roles/storage.legacyObjectReader": frozenset({"storage.objects.get"}),
    "roles/storage.legacyBucketReader": frozenset(
        {
            "storage.buckets.get",
            "storage.objects.list",
            "storage.managedFolders.get",
            "storage.managedFolders.list",
        }
    ),
    "roles/storage.objectCreator": frozenset({"storage.objects.create"}),
    "roles/storage.objectUser": frozenset({*_VIEW, "storage.objects.create", "storage.objects.delete"}),
    "roles/storage.objectAdmin": frozenset({*_VIEW, "storage.objects.create", "storage.objects.delete"}),
    "roles/storage.legacyBucketWriter": frozenset(
        {"storage.buckets.get", "storage.objects.list", "storage.objects.create", "storage.objects.delete"}
    ),
}


class BadBoundary(Exception):
    """A boundary that the token exchange refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One permission that a request needs, on one resource."""

    permission: str
    bucket: str
    # The resource's name and type as conditions see them.
    name: str
    kind: str
    list_prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    bucket: str
    permissions: frozenset[str]
    condition: Any = None

    def allows(self, access: Access) -> bool:
        if access.bucket != self.bucket or access.permission not in self.permissions:
            return False
        return self.condition is None or _holds(self.condition, access)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    rules: tuple[Rule, ...]

    def allows(self, access: Access) -> bool:
        return any(rule.allows(access) for rule in self.rules)


def parse_boundary(options: str) -> Boundary:
    """Return the boundary in the ``options`` of a token exchange.

    They are documented as percent-encoded JSON, and Google's library encodes them once more for the form. So
    they are decoded here once more than the form is: who leaves that out and has a percent sign in a path,
    fails here.
    """
    try:
        document = json.loads(unquote(options, errors="strict"))
        rules = document["accessBoundary"]["accessBoundaryRules"]
    except (ValueError, KeyError, TypeError):
        raise BadBoundary("options has no accessBoundary with accessBoundaryRules") from None
    if set(document) != {"accessBoundary"} or set(document["accessBoundary"]) != {"accessBoundaryRules"}:
        raise BadBoundary("options has more than an access boundary")
    if not isinstance(rules, list) or not 1 <= len(rules) <= _MOST_RULES:
        raise BadBoundary(f"a boundary has from one to {_MOST_RULES} rules")
    return Boundary(rules=tuple(_parse_rule(rule) for rule in rules))


def _parse_rule(rule: Mapping[str, Any]) -> Rule:
    if (
        not isinstance(rule, Mapping)
        or not {"availableResource", "availablePermissions"} <= set(rule) <= _RULE_KEYS
    ):
        raise BadBoundary("a rule has a resource, permissions and perhaps a condition")
    resource = _RESOURCE.fullmatch(str(rule["availableResource"]))
    if resource is None:
        raise BadBoundary(f"not the name of a bucket: {rule['availableResource']!r}")
    condition = rule.get("availabilityCondition")
    return Rule(
        bucket=resource.group(1),
        permissions=_permissions(rule["availablePermissions"]),
        condition=None if condition is None else _compile(condition),
    )


def _permissions(names: Sequence[str]) -> frozenset[str]:
    if not isinstance(names, list) or not names:
        raise BadBoundary("a rule has a list of permissions")
    found: set[str] = set()
    for name in names:
        role = str(name).removeprefix("inRole:")
        if not str(name).startswith("inRole:") or role not in ROLES:
            raise BadBoundary(f"not a predefined role of storage, written inRole:…: {name!r}")
        found |= ROLES[role]
    return frozenset(found)


def _compile(condition: Mapping[str, Any]) -> Any:
    if not isinstance(condition, Mapping) or not {"expression"} <= set(condition) <= _CONDITION_KEYS:
        raise BadBoundary("a condition has an expression, and perhaps a title and a description")
    expression = condition["expression"]
    if not isinstance(expression, str) or _UNKNOWN_ESCAPE.search(expression):
        raise BadBoundary("an expression is text whose escapes CEL knows")
    environment = celpy.Environment()
    try:
        tree = environment.compile(expression)
    except CELParseError:
        raise BadBoundary("an expression that is not CEL") from None
    for node in tree.iter_subtrees():
        _check_node(str(node.data), [str(child) for child in node.children])
    return environment.program(tree, functions={"getAttribute": _get_attribute})


def _check_node(rule: str, children: Sequence[str]) -> None:
    if rule in _FORBIDDEN_RULES:
        raise BadBoundary(f"conditions of a boundary take no {rule}")
    if rule == "member_dot_arg" and children[1] not in _METHODS:
        raise BadBoundary(f"conditions of a boundary take no {children[1]}()")
    if rule == "member_dot" and children[1] not in _FIELDS:
        raise BadBoundary(f"a resource has no {children[1]}")
    if rule == "ident" and children[0] not in ("resource", "api"):
        raise BadBoundary(f"conditions of a boundary know no {children[0]}")


def _get_attribute(api: Any, name: Any, default: Any) -> Any:
    return api.get(name, default)


def _holds(program: Any, access: Access) -> bool:
    text = celtypes.StringType
    resource = {"name": access.name, "type": access.kind, "service": "storage.googleapis.com"}
    activation = {
        "resource": celtypes.MapType({text(key): text(value) for key, value in resource.items()}),
        # It is there for listings alone; for all else a condition sees its own default.
        "api": celtypes.MapType(
            {text(_LIST_PREFIX): text(access.list_prefix)} if access.permission.endswith(".list") else {}
        ),
    }
    try:
        return bool(program.evaluate(activation))
    except CELEvalError:
        return False
