"""The session policy that opens one directory of a bucket for reading, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.domain.location import Location
from gateway.errors import Unsupported

# What STS takes as plain text, on AWS and on the stores that speak its language.
MOST_CHARACTERS: Final = 2048

# Wildcards, and the sign that begins a variable.
_SPECIAL: Final = re.compile(r"[*?$]")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTerms:
    """What a policy depends on besides the location."""

    partition: str = "aws"
    # The ARN of the access point whose alias the locations name as their bucket.
    access_point: str = ""
    kms_keys: tuple[str, ...] = ()
    # Whether the store reads ``${*}`` as a literal star. One that does not cannot express such a path.
    escapes: bool = True
    # Whether the store knows the action GetBucketLocation.
    bucket_location: bool = True


def session_policy(location: Location, terms: PolicyTerms) -> str:
    """Return the policy document for a location; raise ``Unsupported`` when none says exactly that.

    The prefix of a listing ends with the slash: one without it would reveal the names of siblings. A HEAD of
    the bare path is therefore 403 and not 404, as S3 calls missing only what the caller may list.
    """
    if not terms.escapes and _SPECIAL.search(location.path):
        raise Unsupported(
            "the table's path contains *, ? or $, which this store's policies cannot name exactly: "
            "move the table"
        )
    document = {"Version": "2012-10-17", "Statement": [*_statements(location, terms)]}
    # Only ASCII: STS takes no character above U+00FF, while an escape of JSON names any.
    policy = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    if len(policy) > MOST_CHARACTERS:
        raise Unsupported(
            f"the table's path is too long for a session policy: it takes {len(policy)} of "
            f"{MOST_CHARACTERS} characters"
        )
    return policy


def escape(text: str) -> str:
    """Return a pattern that matches the text and nothing else."""
    # In one pass: a second one would take the signs that the first has put there for the text's own.
    return _SPECIAL.sub(lambda found: f"${{{found.group()}}}", text)


def _statements(location: Location, terms: PolicyTerms) -> list[Mapping[str, Any]]:
    below = f"{escape(location.path)}/*" if location.path else "*"
    bucket = terms.access_point or f"arn:{terms.partition}:s3:::{location.authority}"
    objects = f"{bucket}/object/{below}" if terms.access_point else f"{bucket}/{below}"
    listing: dict[str, Any] = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": bucket}
    if location.path:
        listing["Condition"] = {"StringLike": {"s3:prefix": below}}
    statements: list[Mapping[str, Any]] = [
        {"Effect": "Allow", "Action": ["s3:GetObject", "s3:GetObjectVersion"], "Resource": objects},
        listing,
    ]
    # An access point has no location of its own to ask for.
    if terms.bucket_location and not terms.access_point:
        statements.append({"Effect": "Allow", "Action": "s3:GetBucketLocation", "Resource": bucket})
    if terms.kms_keys:
        statements.append(_decryption(terms.kms_keys))
    return statements


def _decryption(keys: tuple[str, ...]) -> Mapping[str, Any]:
    return {
        "Effect": "Allow",
        "Action": "kms:Decrypt",
        "Resource": list(keys),
        # Through S3 only, which has checked the object before it asks for its key.
        "Condition": {"StringLike": {"kms:ViaService": "s3.*"}},
    }
