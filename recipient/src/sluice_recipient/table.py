"""A shared table, opened for the engine that the recipient likes."""

# The engines are not installed where this is checked.
# mypy: disable-error-code="import-not-found, no-any-return"

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sluice_recipient.access import DIR, Access, Mode, check_mode, choose
from sluice_recipient.address import TableName, parse_address, parse_name
from sluice_recipient.client import GatewayClient, TableInfo
from sluice_recipient.companion import Companion, process_companion
from sluice_recipient.credential import AwsKeys, Credential
from sluice_recipient.engines.arrow import read_arrow
from sluice_recipient.engines.deltalake import open_deltalake
from sluice_recipient.engines.duckdb import scan_duckdb
from sluice_recipient.engines.polars import scan_polars
from sluice_recipient.engines.spark import read_spark
from sluice_recipient.errors import NotUsable, StaticCredentialWarning, Unavailable
from sluice_recipient.profile import parse_profile, read_profile
from sluice_recipient.refreshing import Refreshing
from sluice_recipient.storage import AMBIENT, container_options, renewed_place, static_options
from sluice_recipient.transport import Transport, UrllibTransport
from sluice_recipient.url_files import UrlFiles, Version, to_question

if TYPE_CHECKING:
    import deltalake
    import duckdb
    import polars as pl
    import pyarrow as pa
    import pyspark.sql


class SharedTable:
    """One table that is shared with this recipient. Its credential is renewed for as long as it is used."""

    def __init__(
        self,
        client: GatewayClient,
        name: TableName,
        *,
        mode: Mode = "auto",
        address: str | None = None,
        companion: Callable[[], Companion] | None = process_companion,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        check_mode(mode)
        self.name = name
        self.address = address
        self.mode: Mode = mode
        self._client = client
        self._companion = companion
        self._environ = os.environ if environ is None else environ
        self._credential = Refreshing(functools.partial(client.credential, name), client.clock)

    def __repr__(self) -> str:
        return f"SharedTable({str(self.name)!r}, mode={self.mode!r})"

    @functools.cached_property
    def info(self) -> TableInfo:
        """How the table is shared, as the gateway says."""
        return self._client.describe(self.name)

    @property
    def location(self) -> str:
        """The table's directory."""
        return self._credential.current().location

    def access_for(self, engine: str, schemes: frozenset[str]) -> Access:
        """Return whether an engine reads the directory, or URLs."""
        # Whoever asks for dir gets it even from a server that does not advertise it.
        info = self._directory() if self.mode == DIR else self.info
        return choose(self.mode, info, engine, schemes)

    def credentials(self, location: str | None = None) -> Credential:
        """Return a credential that is valid now, for the table or for one of its auxiliary locations."""
        if location is None:
            return self._credential.current()
        return self._client.credential(self.name, location)

    def storage_options(self, *, renewed: bool = False) -> dict[str, str]:
        """Return options for delta-rs, Polars, obstore and all else that is built on object_store.

        They hold the credential itself. With ``renewed`` they hold an address on loopback instead, at which
        the engine finds the next credential for as long as this process lives; on S3 only.
        """
        credential = self._credential.current()
        if renewed:
            try:
                return self._renewed_options(credential)
            except (NotUsable, Unavailable) as exc:
                _warn(credential, str(exc))
        return static_options(credential)

    def files(self, version: Version | None = None) -> UrlFiles:
        """Return the files of the latest or another version, with URLs that are renewed while they are used.

        A version is a number, or a time such as ``2026-01-31T00:00:00Z``.
        """
        return UrlFiles(self._client, self.name, version)

    def delta_lines(self, version: Version | None = None) -> list[str]:
        """Return the latest or another version in the delta format, as lines of JSON; their URLs expire."""
        return self._client.delta_lines(self.name, at=to_question(version))

    def to_deltalake(self, **options: Any) -> deltalake.DeltaTable:
        """Return a ``deltalake.DeltaTable``; ``options`` are its own, such as ``version``."""
        return open_deltalake(self, options)

    def to_polars(self, **options: Any) -> pl.LazyFrame:
        """Return a Polars ``LazyFrame``; ``options`` are those of ``scan_delta``, such as ``version``."""
        return scan_polars(self, options)

    def to_arrow(self, version: Version | None = None) -> pa.RecordBatchReader:
        """Return a ``pyarrow.RecordBatchReader``, of the latest version if none is given."""
        return read_arrow(self, version)

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None, *, version: Version | None = None
    ) -> duckdb.DuckDBPyRelation:
        """Return a DuckDB relation, in the default connection if none is given."""
        return scan_duckdb(self, connection, version)

    def to_pyspark(
        self, spark: pyspark.sql.SparkSession, *, command: str | None = None, **options: str
    ) -> pyspark.sql.DataFrame:
        """Return a DataFrame; ``options`` are those of Delta's reader, such as ``versionAsOf``.

        ``command`` is what runs on driver and executors to get a credential; by default it is
        ``sluice-recipient credentials`` with this table's address.
        """
        return read_spark(self, spark, command=command, options=options)

    def _directory(self) -> TableInfo:
        return TableInfo(name=self.name, access_modes=frozenset({DIR}), location=self.location)

    def _renewed_options(self, credential: Credential) -> dict[str, str]:
        if not isinstance(credential.secret, AwsKeys):
            raise NotUsable("there is no way to renew it for this store; open the table again then")
        place = renewed_place(credential.secret)
        if ambient := [name for name in AMBIENT if self._environ.get(name)]:
            raise NotUsable(f"{ambient[0]} of the environment would be used in its place; unset it")
        if self._companion is None:
            raise NotUsable("a transport of your own is not there outside this process")
        address = self._companion().address_of(self._client.profile, self.name)
        return place | container_options(address.uri, str(address.token_file))


def open_table(
    address: str,
    *,
    mode: Mode = "auto",
    profile: Mapping[str, Any] | None = None,
    transport: Transport | None = None,
) -> SharedTable:
    """Open ``profile.share#share.schema.table``, or ``share.schema.table`` of a profile given as a mapping.

    ``mode`` is ``dir`` for credentials to the table's directory, ``url`` for one URL per file, and ``auto``
    for the first of the two that the table is shared by and the engine can use.
    """
    if profile is None:
        file, name = parse_address(address)
        opened = read_profile(file)
        # Absolute, because Spark's executors and AWS clients are elsewhere.
        absolute: str | None = f"{file.absolute()}#{name}"
    else:
        name, opened, absolute = parse_name(address), parse_profile(profile), None
    client = GatewayClient(opened, transport or UrllibTransport())
    companion = process_companion if transport is None else None
    return SharedTable(client, name, mode=mode, address=absolute, companion=companion)


def _warn(credential: Credential, reason: str) -> None:
    expires_at = credential.expires_at.isoformat(timespec="seconds")
    warnings.warn(
        f"this engine's credential is good until {expires_at} and is not renewed: {reason}",
        StaticCredentialWarning,
        # Of who calls to_deltalake.
        stacklevel=5,
    )
