"""How Spark reaches the local file system: as whoever runs it."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.domain.location import Location


class LocalSpark:
    """Is the port ``SparkAccess``."""

    async def settings(self) -> Mapping[str, str]:
        return {}

    def url(self, location: Location) -> str:
        # Hadoop takes the path of such a text as it is: what is encoded in it is part of a name.
        return f"file:/{location.path}"
