"""The forms in which AWS clients take credentials from elsewhere."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sluice_recipient.credential import AwsKeys, Credential
from sluice_recipient.errors import NotUsable


def aws_keys(credential: Credential) -> AwsKeys:
    """Return the keys of a credential for S3."""
    if isinstance(credential.secret, AwsKeys):
        return credential.secret
    raise NotUsable("the table does not lie on S3, so there are no AWS credentials for it")


def process_answer(credential: Credential) -> dict[str, Any]:
    """Return what a ``credential_process`` prints."""
    keys = aws_keys(credential)
    return {
        "Version": 1,
        "AccessKeyId": keys.access_key_id,
        "SecretAccessKey": keys.secret_access_key,
        "SessionToken": keys.session_token,
        "Expiration": _timestamp(credential.expires_at),
    }


def container_answer(credential: Credential) -> dict[str, Any]:
    """Return what a container credentials endpoint answers."""
    keys = aws_keys(credential)
    return {
        "AccessKeyId": keys.access_key_id,
        "SecretAccessKey": keys.secret_access_key,
        "Token": keys.session_token,
        "Expiration": _timestamp(credential.expires_at),
    }


def process_command(address: str, executable: str = sys.executable) -> str:
    """Return a ``credential_process`` that is found whatever the caller's PATH is."""
    script = Path(executable).with_name("sluice-recipient")
    program = [str(script)] if script.exists() else [executable, "-m", "sluice_recipient"]
    return shlex.join([*program, "credentials", address])


def profile_section(name: str, command: str) -> str:
    """Return a section of an AWS credentials file, whose credentials a command prints."""
    return f"[{name}]\ncredential_process = {command}\n"


def _timestamp(at: datetime) -> str:
    # Whole seconds, rounded down: never later than the truth.
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
