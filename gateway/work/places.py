"""Locations as Spark spells them, and what opens them for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from gateway.domain.credential import AwsTempCredentials
from gateway.domain.location import Location
from gateway.domain.scope import Scope
from gateway.ports import Storages

# Whom the credentials of a run name, where they name anybody.
PIPELINE: Final = "sluice-pipeline"


class SparkPlaces:
    """For the storages of a configuration. A place that none of them knows how to open is Spark's own affair:
    its spelling is the one that was given, and its settings are the operator's.
    """

    def __init__(self, storages: Storages) -> None:
        self._storages = storages

    def url(self, location: Location) -> str:
        """Return a location in the spelling that Spark reads and writes it by."""
        storage = self._storages.find(location)
        if storage is not None and storage.spark is not None:
            return storage.spark.url(location)
        if location.scheme == "file":
            return f"file:/{location.path}"
        # Whatever is given for it, Hadoop has this scheme for S3.
        scheme = "s3a" if location.scheme == "s3" else location.scheme
        return f"{scheme}://{location.authority}/{location.path}"

    async def settings(
        self, locations: Iterable[Location], *, reads: Iterable[Location] = (), life: timedelta | None = None
    ) -> dict[str, str]:
        """Return the Hadoop settings for these locations, secrets among them.

        What is only read is opened by a credential for it alone, where one lives as long as the run may take.
        """
        locations = tuple(dict.fromkeys(locations))
        found: dict[str, str] = {}
        seen: set[str] = set()
        for location in locations:
            storage = self._storages.find(location)
            if storage is not None and storage.spark is not None and storage.name not in seen:
                seen.add(storage.name)
                found |= await storage.spark.settings()
        for location in set(reads):
            found |= await self._narrowed(location, locations, life)
        return found

    async def _narrowed(
        self, location: Location, locations: Sequence[Location], life: timedelta | None
    ) -> dict[str, str]:
        """Return what opens a location in place of its storage's own keys; nothing where that cannot be."""
        storage = self._storages.find(location)
        if storage is None or storage.issuer is None or life is None or storage.credential_life < life:
            return {}
        # Hadoop is told of keys by bucket: what else lies in this one needs the storage's own.
        shared = [other for other in locations if other.root == location.root]
        if location.scheme != "s3" or shared != [location]:
            return {}
        scope = Scope(location=location, recipient=PIPELINE, life=storage.credential_life)
        credential = await storage.issuer.issue(scope)
        if not isinstance(credential.secret, AwsTempCredentials):
            return {}
        keys = {
            "aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
            "access.key": credential.secret.access_key_id,
            "secret.key": credential.secret.secret_access_key,
            "session.token": credential.secret.session_token,
        }
        return {f"fs.s3a.bucket.{location.authority}.{name}": value for name, value in keys.items()}
