"""``sluice keys``: make the ``keys:`` section of a configuration."""

from __future__ import annotations

import argparse
import secrets
import textwrap
from collections.abc import Iterator, Mapping
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from gateway.config.purpose import GRANT_SIGNER, GRANT_VERIFIERS, PURPOSES
from gateway.config.schema import ServiceName
from gateway.domain.key import Purpose

_SECRET_BYTES: Final = 32
_ADVICE: Final = """\
# Keep these secret. To change keys without turning away what they signed, move the old ones to keys.previous.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    new = actions.add_parser(
        "new", help="print a fresh keys section", description="Print a fresh keys section."
    )
    new.add_argument(
        "--split",
        action="store_true",
        help="print a section for each service's process, with the keys of its purposes only",
    )


def run(args: argparse.Namespace, _env: Mapping[str, str]) -> int:
    print(_ADVICE, end="")
    if args.split:
        print("---\n".join(_split_sections()), end="")
    else:
        print(_section([("secret", _secret())]), end="")
    return 0


def _split_sections() -> Iterator[str]:
    by_purpose = {purpose: _secret() for purpose in Purpose}
    private, public = _grant_pair()
    for service in ServiceName:
        entries = [(purpose.value, by_purpose[purpose]) for purpose in PURPOSES[service]]
        if service is GRANT_SIGNER:
            entries.append(("grantPrivateKey", private))
        if service in GRANT_VERIFIERS:
            entries.append(("grantPublicKey", public))
        yield f"# {service}\n{_section(entries)}"


def _section(entries: list[tuple[str, str]]) -> str:
    return "keys:\n  current:\n" + "".join(_entry(key, value) for key, value in entries)


def _entry(key: str, value: str) -> str:
    if "\n" in value:
        return f"    {key}: |\n{textwrap.indent(value, ' ' * 6)}"
    return f'    {key}: "{value}"\n'


def _secret() -> str:
    return secrets.token_urlsafe(_SECRET_BYTES)


def _grant_pair() -> tuple[str, str]:
    private = Ed25519PrivateKey.generate()
    private_pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public_pem = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private_pem.decode(), public_pem.decode()
