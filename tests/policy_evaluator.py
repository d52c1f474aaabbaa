"""Evaluates an AWS IAM policy as AWS's documentation says; what it does not know, it refuses to guess.

One document alone: the rules of the IAM User Guide on policy evaluation (an explicit deny wins, the default
is deny), on wildcards, on variables and on condition operators.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VERSION = "2012-10-17"
_STATEMENT_KEYS = frozenset({"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"})
# Condition keys that S3 and KMS requests of these helpers can carry; another one would silently never match.
_KNOWN_KEYS = frozenset(
    {
        *("s3:prefix", "s3:delimiter", "s3:max-keys", "s3:signatureage", "s3:authtype", "s3:versionid"),
        *(
            "s3:dataaccesspointarn",
            "s3:dataaccesspointaccount",
            "s3:resourceaccount",
            "s3:accesspointnetworkorigin",
        ),
        *("kms:viaservice", "kms:encryptioncontext:aws:s3:arn", "kms:calleraccount"),
        *("aws:username", "aws:userid", "aws:securetransport", "aws:currenttime", "aws:tokenissuetime"),
        *("aws:principalarn", "aws:principalaccount", "aws:sourceip"),
    }
)
_TAG_PREFIXES = ("aws:principaltag/", "aws:requesttag/", "aws:resourcetag/")
_LITERALS = {"*": "*", "?": "?", "$": "$"}
_ARN_SEGMENTS = 6

Context = Mapping[str, str]


class UnknownElement(Exception):
    """The policy says something that this evaluator does not know, or AWS would not accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody wants to do, and what AWS knows about it."""

    action: str
    resource: str
    context: Context


def evaluate(policy: Mapping[str, Any] | str, action: str, resource_arn: str, context: Context) -> bool:
    """Say whether the document alone allows an action on a resource."""
    return allows(policy, Request(action=action, resource=resource_arn, context=context))


def allows(policy: Mapping[str, Any] | str, request: Request) -> bool:
    # Duplicate names are read by AWS in a way that is not documented: they are a mistake.
    document = json.loads(policy, object_pairs_hook=_unique) if isinstance(policy, str) else policy
    effects = {statement["Effect"] for statement in _statements(document) if _applies(statement, request)}
    return "Allow" in effects and "Deny" not in effects


def get_object(bucket: str, key: str, *, partition: str = "aws") -> Request:
    return _object("s3:GetObject", bucket, key, partition)


def get_object_version(bucket: str, key: str, *, partition: str = "aws") -> Request:
    return _object("s3:GetObjectVersion", bucket, key, partition)


def put_object(bucket: str, key: str, *, partition: str = "aws") -> Request:
    return _object("s3:PutObject", bucket, key, partition)


def delete_object(bucket: str, key: str, *, partition: str = "aws") -> Request:
    return _object("s3:DeleteObject", bucket, key, partition)


def list_bucket(
    bucket: str, prefix: str | None = None, delimiter: str | None = None, *, partition: str = "aws"
) -> Request:
    """Return a ListObjects request; the condition keys are there only when the parameters are."""
    given = {"s3:prefix": prefix, "s3:delimiter": delimiter}
    context = {name: value for name, value in given.items() if value is not None}
    return _bucket("s3:ListBucket", bucket, partition, context)


def get_bucket_location(bucket: str, *, partition: str = "aws") -> Request:
    return _bucket("s3:GetBucketLocation", bucket, partition, {})


def bucket_request(action: str, bucket: str, *, partition: str = "aws") -> Request:
    return _bucket(action, bucket, partition, {})


def object_request(action: str, bucket: str, key: str, *, partition: str = "aws") -> Request:
    return _object(action, bucket, key, partition)


def _object(action: str, bucket: str, key: str, partition: str) -> Request:
    return Request(action=action, resource=f"arn:{partition}:s3:::{bucket}/{key}", context={})


def _bucket(action: str, bucket: str, partition: str, context: Context) -> Request:
    return Request(action=action, resource=f"arn:{partition}:s3:::{bucket}", context=context)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise UnknownElement(f"a name is there twice among {[name for name, _ in pairs]}")
    return dict(pairs)


def _statements(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if set(document) - {"Version", "Id", "Statement"}:
        raise UnknownElement(f"not elements of a policy: {sorted(set(document))}")
    if document.get("Version") != VERSION:
        # Without this version variables are plain text, so that escapes would not be escapes.
        raise UnknownElement(f"the version is {document.get('Version')!r}, not {VERSION}")
    statements = document["Statement"]
    for statement in [statements] if isinstance(statements, Mapping) else statements:
        _check_statement(statement)
        yield statement


def _check_statement(statement: Mapping[str, Any]) -> None:
    if unknown := set(statement) - _STATEMENT_KEYS:
        raise UnknownElement(f"not elements of a statement of a session policy: {sorted(unknown)}")
    if statement.get("Effect") not in ("Allow", "Deny"):
        raise UnknownElement(f"the effect is {statement.get('Effect')!r}")
    for pair in (("Action", "NotAction"), ("Resource", "NotResource")):
        if sum(name in statement for name in pair) != 1:
            raise UnknownElement(f"a statement has exactly one of {pair}")


def _applies(statement: Mapping[str, Any], request: Request) -> bool:
    # All parts are looked at before any decides, so that what is not known is always told; so it is below.
    conditions = [_holds(test, keys, request) for test, keys in statement.get("Condition", {}).items()]
    parts = [_names_action(statement, request.action), _names_resource(statement, request), *conditions]
    return all(parts)


def _names_action(statement: Mapping[str, Any], action: str) -> bool:
    def names(pattern: str) -> bool:
        if pattern != "*" and not re.fullmatch(r"[a-z0-9-]+:[A-Za-z0-9*?]+", pattern):
            raise UnknownElement(f"not an action: {pattern!r}")
        # The names of services and actions have no case.
        return _matches(pattern.lower(), action.lower(), {})

    return _is_named(statement, "Action", names)


def _names_resource(statement: Mapping[str, Any], request: Request) -> bool:
    def names(pattern: str) -> bool:
        return _matches_arn(pattern, request.resource, request.context)

    return _is_named(statement, "Resource", names)


def _is_named(statement: Mapping[str, Any], element: str, names: Callable[[str], bool]) -> bool:
    is_negated = element not in statement
    named = [names(pattern) for pattern in _strings(statement[f"Not{element}" if is_negated else element])]
    return any(named) != is_negated


def _matches_arn(pattern: str, arn: str, context: Context) -> bool:
    if pattern == "*":
        return True
    wanted, given = pattern.split(":", _ARN_SEGMENTS - 1), arn.split(":", _ARN_SEGMENTS - 1)
    if len(wanted) != _ARN_SEGMENTS or wanted[0] != "arn" or "*" in wanted[2] or "?" in wanted[2]:
        raise UnknownElement(f"not an ARN whose service is named: {pattern!r}")
    if any(":" in variable for segment in wanted[:-1] for variable in re.findall(r"\$\{([^}]*)", segment)):
        raise UnknownElement(f"a variable before the resource of an ARN: {pattern!r}")
    # A wildcard stays in its segment; the last segment is everything after the fifth colon.
    matched = [_matches(one, other, context) for one, other in zip(wanted, given, strict=True)]
    return all(matched)


def _holds(operator: str, keys: Mapping[str, Any], request: Request) -> bool:
    test = _OPERATORS.get(operator.removesuffix("IfExists"))
    if test is None:
        raise UnknownElement(f"not a condition operator that this evaluator knows: {operator}")
    # Names of keys have no case.
    context = {name.lower(): value for name, value in request.context.items()}
    if_missing = operator.endswith("IfExists") or test.is_negated
    results = []
    for key, values in keys.items():
        _check_key(key)
        found = context.get(key.lower())
        matched = [test.matches(value, found or "", request.context) for value in _strings(values)]
        results.append(if_missing if found is None else any(matched) != test.is_negated)
    return all(results)


def _check_key(key: str) -> None:
    name = key.lower()
    if name not in _KNOWN_KEYS and not name.startswith(_TAG_PREFIXES):
        raise UnknownElement(f"not a condition key that this evaluator knows: {key}")


@dataclass(frozen=True, slots=True)
class _Operator:
    has_wildcards: bool
    is_negated: bool
    has_case: bool = True

    def matches(self, pattern: str, value: str, context: Context) -> bool:
        if not self.has_case:
            pattern, value = pattern.lower(), value.lower()
        return _matches(pattern, value, context, wildcards=self.has_wildcards)


_OPERATORS = {
    "StringEquals": _Operator(has_wildcards=False, is_negated=False),
    "StringNotEquals": _Operator(has_wildcards=False, is_negated=True),
    "StringEqualsIgnoreCase": _Operator(has_wildcards=False, is_negated=False, has_case=False),
    "StringNotEqualsIgnoreCase": _Operator(has_wildcards=False, is_negated=True, has_case=False),
    "StringLike": _Operator(has_wildcards=True, is_negated=False),
    "StringNotLike": _Operator(has_wildcards=True, is_negated=True),
    "Bool": _Operator(has_wildcards=False, is_negated=False, has_case=False),
}


def _matches(pattern: str, value: str, context: Context, *, wildcards: bool = True) -> bool:
    expression = _expression(pattern, context, wildcards=wildcards)
    return expression is not None and re.fullmatch(expression, value, re.DOTALL) is not None


def _expression(pattern: str, context: Context, *, wildcards: bool) -> str | None:
    """Return a regular expression, or nothing when a variable has no value: then nothing matches."""
    if re.search(r"\$\{(?![^}]*\})", pattern):
        raise UnknownElement(f"a variable that does not end: {pattern!r}")
    parts = []
    for variable, character in re.findall(r"\$\{([^}]*)\}|(.)", pattern, re.DOTALL):
        if character == "":
            value = _value(variable, context)
            if value is None:
                return None
            # What a variable stands for is text, with no wildcards in it.
            parts.append(re.escape(value))
        elif wildcards and character in "*?":
            parts.append(".*" if character == "*" else ".")
        else:
            parts.append(re.escape(character))
    return "".join(parts)


def _value(variable: str, context: Context) -> str | None:
    if variable in _LITERALS:
        return _LITERALS[variable]
    name, separator, default = variable.partition(",")
    _check_key(name)
    found = next((value for key, value in context.items() if key.lower() == name.lower()), None)
    if found is None and separator:
        quoted = re.fullmatch(r" *'([^']*)' *", default)
        if quoted is None:
            raise UnknownElement(f"not a default value: {variable!r}")
        return quoted.group(1)
    return found


def _strings(value: Any) -> Sequence[str]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, Sequence) or not values or not all(isinstance(each, str) for each in values):
        raise UnknownElement(f"not a string or a list of strings: {value!r}")
    return values
