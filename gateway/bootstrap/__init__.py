"""The composition root: the only place that knows edge, services and adapters at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from grpc import aio

from gateway.adapters.audit_log import AuditSettings, LenientAuditLog, audit_log
from gateway.adapters.audit_shipping import Shipping
from gateway.adapters.caller_metrics import PrometheusCallerMetrics
from gateway.adapters.catalog_yaml import YamlCatalog, build_index
from gateway.adapters.certificate_metrics import CertificateMetrics
from gateway.adapters.job_queue import StateJobQueue
from gateway.adapters.keyring import Keyring, open_keyring
from gateway.adapters.loop_lag import measured_loop
from gateway.adapters.metrics import PrometheusMetrics
from gateway.adapters.ops_server import serve_ops
from gateway.adapters.queue_watch import watched_queue
from gateway.adapters.service_metrics import ServiceMetrics
from gateway.adapters.state import open_state
from gateway.adapters.storage_check import FindVendor
from gateway.adapters.storage_plan import LocalRoots, covering_storages
from gateway.adapters.storages import OpenStorages, StorageProcess
from gateway.adapters.token_metrics import TokenMetrics
from gateway.adapters.vendors import find_vendor
from gateway.adapters.work_metrics import PrometheusQueueMetrics
from gateway.bootstrap.certificates import ServicesCertificates, show_redis_certificate
from gateway.bootstrap.departure import Departure
from gateway.bootstrap.given import Given, Operations
from gateway.bootstrap.landing import audit_directory, shipping
from gateway.bootstrap.readiness import Readiness, missing
from gateway.bootstrap.reload import Rates, Reloader
from gateway.bootstrap.renewal import Renewals, signatures
from gateway.bootstrap.replica import replica_name
from gateway.bootstrap.services import WIRE_NAMES, Parts, build_service
from gateway.config.faults import ConfigError
from gateway.config.load import Loaded
from gateway.config.schema import Config, ServiceName, has_views, public_url, reads_tables
from gateway.domain.audit import AuditEvent
from gateway.domain.key import Purpose
from gateway.errors import Internal
from gateway.ports import AuditLog, utcnow
from gateway.rpc.admission import Gate
from gateway.rpc.certificates import Certificates, certificate_files
from gateway.rpc.dial import open_channel
from gateway.rpc.local import LocalChannel
from gateway.rpc.rate import LocalBuckets
from gateway.rpc.renewing import RenewingChannel
from gateway.rpc.server import Health, listen, network_server

_AUDITED: Final = frozenset({ServiceName.EDGE, ServiceName.CATALOG})
# Only these hold a storage identity.
_STORING: Final = frozenset({ServiceName.SNAPSHOT, ServiceName.PRESIGN, ServiceName.VENDING})
# Only these hold what opens a storage for others, and so a connection to Redis.
_ISSUING: Final = frozenset({ServiceName.PRESIGN, ServiceName.VENDING})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A process that serves."""

    config: Config
    metrics_address: str
    # Asks for the configuration to be read again.
    reload: Callable[[], None]


@asynccontextmanager
async def running(
    config: Config, source: Callable[[], Loaded], file: Path, given: Given
) -> AsyncIterator[Running]:
    """Run the configured parts until the block is left; then let requests under way finish."""
    async with AsyncExitStack() as stack:
        process = _Process(config, given, stack)
        await process.open()
        await process.start_services()
        channels = process.dial_services()
        ops = await process.start_operations(channels)
        if given.http_sockets:
            # Other workers accept on the same sockets: this one must not accept what it cannot serve yet.
            await process.reach_services()
        http_address = await process.start_edge(channels)
        process.watch_services()
        reloader = process.watch(source, file)
        # First of all to happen at the end: nobody should send new requests here.
        stack.push_async_callback(process.departure(ops).serve_on)
        where = {"REST": http_address, "gRPC": config.services.listen, "metrics": ops.address}
        listeners = ", ".join(f"{name} on {address}" for name, address in where.items() if address)
        log.info("serving %s: %s", ", ".join(config.services.run), listeners)
        yield Running(
            config=config,
            metrics_address=ops.address,
            reload=reloader.ask,
        )


class _Process:
    """The parts of this process, opened into one stack."""

    def __init__(self, config: Config, given: Given, stack: AsyncExitStack) -> None:
        self._config = config
        self._given = given
        self._stack = stack
        self._metrics = PrometheusMetrics(version=version("sluice-gateway"))
        self._local = LocalChannel(self._metrics)
        self._health = Health()
        self._leaving = asyncio.Event()
        self._rates = Rates(config)
        self._renewals = Renewals(CertificateMetrics(self._metrics.registry))
        self._checking: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        # Each lookup reads the metadata of every installed package.
        self._find: FindVendor = cache(find_vendor)
        self._run = [name for name in ServiceName if name in config.services.run]

    @property
    def _services(self) -> list[ServiceName]:
        return [name for name in self._run if name in WIRE_NAMES]

    async def open(self) -> None:
        """Open what the parts stand on."""
        config = self._config
        self._certificates = await asyncio.to_thread(self._open_certificates)
        self._keyring: Keyring = await asyncio.to_thread(open_keyring, config, Path(config.state_dir))
        self._shipping = await self._open_shipping()
        self._audit: AuditLog = await self._open_audit()
        self._catalog = YamlCatalog(await asyncio.to_thread(build_index, self._catalog_config(config)))
        self._metrics.set_config(self._catalog.generation, utcnow())
        if ServiceName.CATALOG in self._run:
            TokenMetrics(self._metrics.registry, self._catalog.token_expiries, utcnow)
        self._roots = LocalRoots(config)
        self._storages = await self._open_storages(config)
        self._state = await self._stack.enter_async_context(
            open_state(config, self._storages, find=self._find)
        )
        self._has_views = has_views(config)
        if ServiceName.CATALOG in self._run and self._has_views:
            await self._state.prove_at_start()
        self._stack.push_async_callback(self._stop_checking)
        await self._start_checking(config)

    def _open_certificates(self) -> Certificates | None:
        if self._config.services.tls is None:
            return None
        files = certificate_files(self._config.services.tls)
        before = signatures(files)
        certificates = Certificates(self._config.services.tls)
        self._shown = ServicesCertificates(certificates, self._metrics)
        self._renewals.add("services", files, before, self._shown.take_up)
        return certificates

    async def start_services(self) -> None:
        """Register the services on the local channel and, where there is a listener, on the network."""
        parts = Parts(
            config=self._config,
            keyring=self._keyring,
            catalog=self._catalog,
            storages=self._storages,
            state=self._state,
            jobs=await self._open_jobs(),
            audit=self._audit,
            registry=self._metrics.registry,
            clock=utcnow,
        )
        servers = [self._local.as_server()]
        settings = self._config.services
        network = network_server(settings, self._metrics, self._gate()) if settings.listen else None
        if network is not None:
            servers.append(network)
        for name in self._services:
            register = build_service(name, parts)
            for server in servers:
                register(server)
            await self._health.serve(WIRE_NAMES[name])
        for server in servers:
            self._health.register(server)
        if network is not None:
            names = [WIRE_NAMES[name] for name in self._services]
            await listen(network, settings, names, self._certificates)
            self._stack.push_async_callback(network.stop, self._config.grace.total_seconds())

    async def _open_jobs(self) -> StateJobQueue:
        is_catalog = ServiceName.CATALOG in self._run
        queue = StateJobQueue(
            self._state,
            worker=replica_name(),
            lease=self._config.pipeline.lease_time,
            clock=utcnow,
            metrics=PrometheusQueueMetrics(self._metrics.registry) if is_catalog else None,
        )
        if is_catalog:
            await self._stack.enter_async_context(watched_queue(queue, lambda: self._has_views))
        return queue

    def dial_services(self) -> Mapping[ServiceName, aio.Channel]:
        """Return a channel to each service that this process needs."""
        needed = WIRE_NAMES if ServiceName.EDGE in self._run else self._services
        return {name: self._dial(name) for name in needed}

    def _dial(self, name: ServiceName) -> aio.Channel:
        settings = self._config.services
        if name in self._run:
            return self._local.as_channel()
        dial = partial(
            open_channel, settings.addresses[name], timeout=settings.timeout, service=WIRE_NAMES[name]
        )
        if self._certificates is None:
            channel = dial(None)
        else:
            renewing = RenewingChannel(dial, self._certificates)
            self._shown.add(renewing)
            channel = renewing.as_channel()
        self._stack.push_async_callback(channel.close)
        return channel

    def _gate(self) -> Gate:
        audit = self._audit if _AUDITED & set(self._run) else None
        metrics = PrometheusCallerMetrics(self._metrics.registry)
        return Gate(self._catalog, LocalBuckets(utcnow), metrics, audit, utcnow)

    async def start_operations(self, channels: Mapping[ServiceName, aio.Channel]) -> Operations:
        await self._stack.enter_async_context(measured_loop(self._metrics))
        await asyncio.to_thread(show_redis_certificate, self._config, self._run, self._metrics)
        serve = self._given.operations or partial(serve_ops, self._config.metrics.listen, missing=missing)
        self._readiness = Readiness(
            channels, channels.keys() - set(self._run), ServiceMetrics(self._metrics.registry)
        )
        return await self._stack.enter_async_context(serve(self._metrics.registry, self._readiness))

    def watch_services(self) -> None:
        """Start the health checks that make the process ready. Call it after the edge listens."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._readiness.watch())
            self._stack.push_async_callback(_cancelled, self._watching)

    async def reach_services(self) -> None:
        """Wait until all services are reached, or start-up has taken too long."""
        self.watch_services()
        await self._readiness.reach_services()

    async def start_edge(self, channels: Mapping[ServiceName, aio.Channel]) -> str:
        if ServiceName.EDGE not in self._run:
            return ""
        from gateway.bootstrap.edge import EdgeParts, serve_edge  # noqa: PLC0415 -- only where the edge runs

        parts = EdgeParts(
            config=self._config,
            keyring=self._keyring,
            channels=channels,
            roots=self._roots,
            rates=self._rates,
            buckets=self._given.buckets,
            audit=self._audit,
            metrics=self._metrics,
            renewals=self._renewals,
            clock=utcnow,
            is_leaving=self._leaving.is_set,
        )
        return await self._stack.enter_async_context(serve_edge(parts, self._given.http_sockets))

    def watch(self, source: Callable[[], Loaded], file: Path) -> Reloader:
        reloader = Reloader(
            config=self._config, source=source, file=file, apply=self._apply, metrics=self._metrics
        )
        for work in (reloader.watch(), self._renewals.watch()):
            self._stack.push_async_callback(_cancelled, asyncio.create_task(work))
        return reloader

    def departure(self, ops: Operations) -> Departure:
        return Departure(
            ops=ops,
            leaving=self._leaving,
            health=self._health,
            shipping=self._shipping,
            drain=self._config.drain,
        )

    async def _apply(self, config: Config) -> str:
        """Take up a changed configuration, all of it or nothing, and return its generation."""
        index = await asyncio.to_thread(build_index, self._catalog_config(config))
        await self._storages.reload(self._storage_config(config))
        await self._roots.reload(config)
        self._rates.replace(config)
        self._catalog.replace(index)
        self._has_views = has_views(config)
        await self._start_checking(config)
        return self._catalog.generation

    async def _start_checking(self, config: Config) -> None:
        """Look beside all else whether columns are there: who changes a table must hold up nothing by it."""
        await self._stop_checking()
        if reads_tables(config):
            self._checking = asyncio.create_task(self._tell_of_views(config))

    async def _stop_checking(self) -> None:
        if self._checking is not None:
            await _cancelled(self._checking)

    async def _tell_of_views(self, config: Config) -> None:
        from gateway.adapters.view_check import check_view_columns  # noqa: PLC0415 -- only for views

        try:
            checked = await check_view_columns(config, self._storages)
        except Exception:
            log.exception("the columns of views cannot be checked")
            return
        if checked.faults:
            faults = ConfigError(checked.faults)
            log.error("views that cannot be refreshed until they are put right: %s", faults)
        for warning in checked.warnings:
            log.warning("configuration: %s", warning)

    def _catalog_config(self, config: Config) -> Config:
        # Only the catalog's own process holds the catalog.
        return config if ServiceName.CATALOG in self._run else config.model_copy(update={"shares": ()})

    def _storage_config(self, config: Config) -> Config:
        run = set(self._run)
        if _STORING & run:
            return config
        # No identity that opens a table: only those of what the process itself keeps in a store.
        places = [config.state.location] if ServiceName.CATALOG in run else []
        if _AUDITED & run:
            places.append(config.usage.landing)
        return config.model_copy(update={"storages": covering_storages(config, places)})

    async def _open_storages(self, config: Config) -> OpenStorages:
        keys = self._keyring.keys(Purpose.LOCAL_URL) if ServiceName.PRESIGN in self._run else None
        settings = StorageProcess(public_url=public_url(config), url_keys=keys, grace=config.grace)
        if _ISSUING.isdisjoint(self._run):
            storages = OpenStorages(self._storage_config(config), settings, find=self._find)
            return await self._stack.enter_async_context(storages)
        from gateway.bootstrap.storages import cached_storages  # noqa: PLC0415 -- only where it is used

        sealing = self._keyring.keys(Purpose.SEALING)
        return await self._stack.enter_async_context(
            cached_storages(
                self._storage_config(config), settings, sealing, self._metrics.registry, find=self._find
            )
        )

    async def _open_shipping(self) -> Shipping | None:
        """Before the audit log, so that its last segment is closed when shipping ends."""
        if not _AUDITED & set(self._run):
            return None
        return await self._stack.enter_async_context(shipping(self._config, self._metrics.registry))

    async def _open_audit(self) -> AuditLog:
        if not _AUDITED & set(self._run):
            return _NoAuditLog()
        settings = self._config.audit
        strict = await self._stack.enter_async_context(
            audit_log(
                AuditSettings(
                    directory=audit_directory(self._config),
                    replica=replica_name(),
                    segment_bytes=settings.segment_bytes,
                    segment_age=settings.segment_age,
                ),
                self._metrics,
                utcnow,
            )
        )
        return strict if settings.required else LenientAuditLog(strict)


class _NoAuditLog:
    """For a process none of whose services gives anything out by itself."""

    async def append(self, event: AuditEvent) -> None:
        raise Internal("this process keeps no audit log")

    def note(self, event: AuditEvent) -> None:
        raise Internal("this process keeps no audit log")


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
