"""The configuration tree: the reference server's YAML, and our own sections beside it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from gateway.config.redis import CacheConfig
from gateway.config.section import Age, Moment, Section, Size, Span
from gateway.config.value import (
    parse_format_version,
    parse_share_names,
    parse_storage_name,
    parse_targets,
    parse_token_hash,
    typed,
)
from gateway.domain.principal import Permission
from gateway.domain.table import AccessMode

ShareNames = Annotated[tuple[str, ...] | Literal["*"], BeforeValidator(parse_share_names)]
Targets = Annotated[str | tuple[str, ...], BeforeValidator(parse_targets)]

_HOUR_MS: Final = 60 * 60 * 1000

# Keys of the reference server that mean nothing here, and what to do instead.
NOT_APPLICABLE: Final[Mapping[str, str]] = {
    "deltaTableCacheSize": "snapshots are bounded by bytes: set snapshots.memory",
    "stalenessAcceptable": "every request looks for new commits unless snapshots.freshness is set",
}


class ServiceName(StrEnum):
    EDGE = "edge"
    CATALOG = "catalog"
    SNAPSHOT = "snapshot"
    PRESIGN = "presign"
    VENDING = "vending"


class ReferenceSection(Section):
    """A mapping that the reference server defines: its other keys are warned of, not refused."""

    # Keys of the reference server that mean nothing here, and what to do instead.
    not_applicable: ClassVar[Mapping[str, str]] = {}


class TableConfig(ReferenceSection):
    not_applicable: ClassVar[Mapping[str, str]] = {
        "cdfEnabled": "set historyShared to share a table's history and its changes"
    }

    name: str
    location: str
    id: str = ""
    history_shared: bool = False
    start_version: int = Field(default=0, ge=0)
    auxiliary_locations: tuple[str, ...] = ()
    access_modes: tuple[AccessMode, ...] | None = None
    # Whether answers repeat the keys as r2Credentials, for clients of the protocol's draft.
    r2_credentials: bool = False
    # How old an answer about the latest version may be; left out: snapshots.freshness.
    freshness: Age | None = None
    # How often a worker indexes the log; left out: only when `sluice pipeline index` asks for it.
    index_every: Span | None = None


class ViewConfig(Section):
    """A view: a query over shared tables, whose result recipients read as any table."""

    name: str
    id: str = ""
    # Either a query,
    sql: str = ""
    # or columns of a table or view, all when none are named, and a condition on its rows.
    source: str = Field(default="", alias="from")
    columns: tuple[str, ...] = ()
    filter: str = ""
    # Where Spark keeps what the view shows: a directory below it for each materialisation.
    location: str
    access_modes: tuple[AccessMode, ...] | None = None
    # How old what is shown may be before a request for it asks for a refresh.
    max_staleness: Span | None = None
    # How often a worker refreshes it without being asked.
    refresh_every: Span | None = None


class SchemaConfig(ReferenceSection):
    name: str
    tables: tuple[TableConfig, ...] = ()
    views: tuple[ViewConfig, ...] = ()


class ShareConfig(ReferenceSection):
    name: str
    id: str = ""
    schemas: tuple[SchemaConfig, ...] = ()
    display_name: str = Field(default="", max_length=255)
    comment: str = Field(default="", max_length=65536)
    properties: Mapping[Annotated[str, Field(max_length=255)], Annotated[str, Field(max_length=1000)]] = (
        Field(default_factory=dict, max_length=50)
    )
    access_modes: tuple[AccessMode, ...] | None = None


class AuthorizationConfig(ReferenceSection):
    bearer_token: SecretStr


class SslConfig(ReferenceSection):
    self_signed: bool = False
    certificate_file: str = ""
    certificate_key_file: str = ""
    certificate_password_file: str = ""


class TokenConfig(Section):
    """A recipient's bearer token, as its hash: ``sha256:`` and 64 hexadecimal digits."""

    hash: Annotated[str, AfterValidator(parse_token_hash)]
    expires: Moment | None = None


class IdentityConfig(Section):
    """The subject of an issuer's JWTs that speaks for a recipient."""

    issuer: str = Field(min_length=1)
    subject: str = Field(min_length=1)


class RateConfig(Section):
    """How many requests a second a recipient or a platform service may make for long, and at once."""

    requests_per_second: float = Field(gt=0, allow_inf_nan=False)
    burst: int = Field(ge=1)


class RecipientConfig(Section):
    name: str = Field(min_length=1, max_length=255)
    tokens: tuple[TokenConfig, ...] = ()
    identities: tuple[IdentityConfig, ...] = ()
    # Names of shares, or "*" for all.
    shares: ShareNames = ()
    disabled: bool = False
    # Credentials from before this moment are not served again; ``sluice revoke`` sets it.
    revoked_at: Moment | None = None
    rate: RateConfig | None = None
    # What views know it by: current_recipient('region').
    properties: Mapping[Annotated[str, Field(max_length=255)], Annotated[str, Field(max_length=1000)]] = (
        Field(default_factory=dict, max_length=50)
    )


class PrincipalConfig(Section):
    """A platform service: known by its client certificate, by JWTs that its keys sign, or by both at once."""

    name: str = Field(min_length=1, max_length=255)
    # A URI or DNS name among the certificate's subject alternative names, or its common name.
    certificate: str = ""
    # PEM, Ed25519, RSA or P-256: each verifies the JWTs that the service sends as ``authorization`` metadata.
    public_keys: tuple[str, ...] = Field(default=(), max_length=10)
    permissions: tuple[Permission, ...] = ()
    shares: ShareNames = ()
    # Services and methods, as Catalog or Catalog.Resolve; left out: all. What a list leaves out is denied.
    methods: tuple[str, ...] | None = None
    # How often it may call, and how many calls it may have under way, in each process; left out: any number.
    rate: RateConfig | None = None
    concurrent_calls: int | None = Field(default=None, ge=1)


class StorageConfig(Section):
    """A location prefix that belongs to a vendor. ``options`` are the vendor's own."""

    name: Annotated[str, AfterValidator(parse_storage_name)]
    prefix: str
    vendor: str
    # How long credentials are asked for; left out: credentials.life.
    credential_life: Span | None = None
    # Whether the root of the bucket or container may itself be a table's location with dir access.
    allow_root: bool = False
    # Credentials from before this moment are not served again, whoever they are for.
    revoked_at: Moment | None = None
    # Not shown: some vendors' hold secrets.
    options: Annotated[Mapping[str, Any], BeforeValidator(typed)] = Field(default_factory=dict, repr=False)


class TlsConfig(Section):
    """Certificates for mutual TLS between processes; paths of PEM files."""

    certificate: str
    key: str
    ca: str


class ServicesConfig(Section):
    """Which parts run in this process, and where the others are."""

    run: tuple[ServiceName, ...] = tuple(ServiceName)
    # host:port or unix:/path of this process' gRPC services.
    listen: str = ""
    # gRPC targets of the services that do not run here; several are shared out in turn.
    addresses: Mapping[ServiceName, Targets] = Field(default_factory=dict)
    tls: TlsConfig | None = None
    reflection: bool = False
    max_connection_age: Span = timedelta(seconds=15)
    # The longest that one call between processes may take.
    timeout: Span = timedelta(seconds=30)


class KeySetConfig(Section):
    """Keys of one generation: a secret that all purposes derive from, or a key for each purpose."""

    secret: SecretStr | None = None
    list_page: SecretStr | None = None
    file_page: SecretStr | None = None
    refresh: SecretStr | None = None
    local_url: SecretStr | None = None
    sealing: SecretStr | None = None
    # PEM, Ed25519. Only the catalog holds the private half.
    grant_private_key: SecretStr | None = None
    grant_public_key: str | None = None


class KeysConfig(Section):
    current: KeySetConfig = KeySetConfig()
    previous: KeySetConfig = KeySetConfig()


class HttpConfig(Section):
    """The REST listener: how many processes share it, and its limits."""

    workers: int = Field(default=1, ge=1, le=64)
    body_limit: Size = 1024 * 1024
    header_limit: Size = 16 * 1024
    # How long a client may take to send a request's head, its body, and to take a piece of the answer.
    header_timeout: Span = timedelta(seconds=10)
    body_timeout: Span = timedelta(seconds=30)
    write_timeout: Span = timedelta(seconds=60)
    keep_alive: Span = timedelta(seconds=75)
    max_connections: int = Field(default=10_000, ge=1)
    # Whether answers are compressed for clients that can read it, where that pays.
    compression: Literal["auto", "off"] = "auto"
    # Addresses or networks of proxies whose X-Forwarded-For is believed.
    trusted_proxies: tuple[str, ...] = ()


class MetricsConfig(Section):
    """Where metrics and health are served."""

    listen: str = "127.0.0.1:9401"


class AuditConfig(Section):
    # Empty: ``audit`` below the state directory.
    directory: str = ""
    segment_bytes: Size = 64 * 1024 * 1024
    segment_age: Span = timedelta(minutes=10)
    # Whether a grant is refused when its event cannot be written.
    required: bool = True


class LogConfig(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"


class LimitsConfig(Section):
    """What every recipient gets unless its own entry says otherwise."""

    rate: RateConfig = RateConfig(requestsPerSecond=100, burst=200)


class CredentialsConfig(Section):
    """Credentials for dir access."""

    # What providers are asked for; the window in which one is handed out is half of it.
    life: Span = timedelta(hours=1)
    # Whether answers say the region and the endpoint beside the keys.
    region_and_endpoint: bool = True


class SnapshotsConfig(Section):
    # How much memory the snapshots kept in this process may take.
    memory: Size = 2 * 1024 * 1024 * 1024
    # How much memory the lines of their files may take, once they are written; about a kilobyte each.
    lines: Size = 512 * 1024 * 1024
    # How old an answer about a table's latest version may be, unless the table's own entry says otherwise.
    freshness: Age = timedelta(0)


class StateConfig(Section):
    """What replicas and workers share: jobs, leases, materialised views, indexes of logs."""

    # A directory, or a place in an object store that a storage covers; empty: ``state`` below ``state_dir``.
    location: str = ""


class UsageConfig(Section):
    """Who was given what, as tables."""

    # Where replicas ship closed segments of their audit logs; empty: they stay where they are.
    landing: str = ""
    # Where the tables are; empty: none are made.
    location: str = ""
    # How often a worker brings them up to date; left out: only when `sluice pipeline usage` asks for it.
    every: Span | None = None


class SparkConfig(Section):
    """The Spark that jobs run on."""

    master: str = "local[*]"
    # A Spark Connect server, in place of a master: sc://host:port.
    remote: str = ""
    # A directory of jars for Delta and the stores; empty: fetched once into the user's cache.
    jars: str = ""
    # Settings of Spark's own.
    conf: Mapping[str, str] = Field(default_factory=dict, repr=False)


class PipelineConfig(Section):
    spark: SparkConfig = SparkConfig()
    # What a worker that dies costs the others before they take over its job.
    lease_time: Span = timedelta(seconds=30)
    # The longest that one job may take.
    job_timeout: Span = timedelta(hours=6)


class Config(ReferenceSection):
    """A whole file."""

    not_applicable = NOT_APPLICABLE

    # The reference server's keys.
    version: Annotated[int, BeforeValidator(parse_format_version)] = 1
    shares: tuple[ShareConfig, ...] = ()
    authorization: AuthorizationConfig | None = None
    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    endpoint: str = "/delta-sharing"
    ssl: SslConfig | None = None
    pre_signed_url_timeout_seconds: int = Field(default=3600, ge=60, le=7 * 24 * 3600)
    request_timeout_seconds: int = Field(default=300, ge=1)
    # Whether hints leave out files that cannot hold a matching row. Of JSON, either of the two is enough.
    evaluate_predicate_hints: bool = True
    evaluate_json_predicate_hints: bool = True
    evaluate_json_predicate_hints_v2: bool = True
    # The most files of an answer whose client asks for pages; without maxFiles answers are streamed whole.
    query_table_page_size_limit: int = Field(default=100_000, ge=1, le=2**31 - 1)
    query_table_page_token_ttl_ms: int = Field(default=72 * _HOUR_MS, ge=1, le=30 * 24 * _HOUR_MS)
    refresh_token_ttl_ms: int = Field(default=24 * _HOUR_MS, ge=1, le=30 * 24 * _HOUR_MS)

    # Our own.
    # What recipients put before ``/shares``; profiles and local URLs are made from it.
    public_url: str = ""
    # Without recipients and authorization: serve everybody everything, on loopback only.
    allow_anonymous: bool = False
    recipients: tuple[RecipientConfig, ...] = ()
    principals: tuple[PrincipalConfig, ...] = ()
    # None, unlike an empty list, leaves locations to the vendors' standard credential chains.
    storages: tuple[StorageConfig, ...] | None = None
    services: ServicesConfig = ServicesConfig()
    keys: KeysConfig = KeysConfig()
    http: HttpConfig = HttpConfig()
    metrics: MetricsConfig = MetricsConfig()
    audit: AuditConfig = AuditConfig()
    log: LogConfig = LogConfig()
    limits: LimitsConfig = LimitsConfig()
    credentials: CredentialsConfig = CredentialsConfig()
    cache: CacheConfig = CacheConfig()
    snapshots: SnapshotsConfig = SnapshotsConfig()
    state: StateConfig = StateConfig()
    usage: UsageConfig = UsageConfig()
    pipeline: PipelineConfig = PipelineConfig()
    # Left out: ``$XDG_STATE_HOME/sluice``, ``~/.local/state/sluice``, or without a home ``/var/lib/sluice``.
    state_dir: str = ""
    # How long requests under way may take to finish once a stop was asked for.
    grace: Span = timedelta(seconds=30)
    # How long a process that was asked to stop goes on taking requests, while it says that it is not ready.
    drain: Age = timedelta(0)


def has_views(config: Config) -> bool:
    return any(schema.views for share in config.shares for schema in share.schemas)


def reads_tables(config: Config) -> bool:
    """True if this process checks the columns of views: it has views, and may read the logs of tables."""
    return has_views(config) and ServiceName.SNAPSHOT in config.services.run


def public_url(config: Config) -> str:
    """Return the URL that precedes ``/shares`` in what recipients request."""
    if config.public_url:
        return config.public_url.rstrip("/")
    scheme = "http" if config.ssl is None else "https"
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"{scheme}://{host}:{config.port}{config.endpoint}".rstrip("/")
