"""Certificates for tests: an authority, and what it signs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from deploy.compose import authority
from gateway.config.schema import TlsConfig

# Longer than any lane: session fixtures keep them.
_LIFE = timedelta(days=1)
_LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates into files below a directory."""

    directory: Path
    signer: authority.Authority

    @property
    def ca(self) -> Path:
        return self.directory / "ca.pem"

    def issue(self, name: str, *hosts: str, life: timedelta = _LIFE) -> TlsConfig:
        """Return the files of a certificate for loopback and other hosts whose holder is called ``name``."""
        issued = self.signer.issue(name, (*_LOOPBACK, *hosts), life)
        certificate, key = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        certificate.write_text(issued.certificate)
        key.write_text(issued.key)
        return TlsConfig(certificate=str(certificate), key=str(key), ca=str(self.ca))


def new_authority(directory: Path) -> Authority:
    directory.mkdir(parents=True, exist_ok=True)
    made = Authority(directory, authority.Authority("test authority", trust_domain="sluice.test"))
    made.ca.write_text(made.signer.certificate)
    return made
