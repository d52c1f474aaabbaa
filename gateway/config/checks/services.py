"""Which services run here, where they listen and where the others are."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.config.address import Address, parse_listener, parse_target
from gateway.config.checks.file import check_file
from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import Config, ServiceName, ServicesConfig


def check_services(config: Config, report: Report) -> None:
    services = config.services
    _check_run(services, report)
    if report.is_intact(("services", "run"), ("services", "tls")):
        _check_listen(services, report)
        _check_addresses(services, report)
    if services.tls is not None:
        for key in ("certificate", "key", "ca"):
            check_file(getattr(services.tls, key), ("services", "tls", key), report)


def _check_run(services: ServicesConfig, report: Report) -> None:
    path: Path = ("services", "run")
    if not services.run:
        report.fault(path, f"must name at least one of {', '.join(ServiceName)}", services.run)
    elif len(set(services.run)) < len(services.run):
        report.fault(path, "must name each service once", services.run)


def _check_listen(services: ServicesConfig, report: Report) -> None:
    path: Path = ("services", "listen")
    if not services.listen:
        # An edge calls the services of its own process without a listener.
        if services.run and ServiceName.EDGE not in services.run:
            names = ", ".join(services.run)
            report.fault(path, f"is missing: without it nobody can reach {names}, which this process runs")
        return
    try:
        address = parse_listener(services.listen)
    except ValueError as exc:
        report.fault(path, str(exc), services.listen)
        return
    if services.tls is None and not address.is_private:
        report.fault(
            path,
            "is not on loopback, so it needs mutual TLS: set services.tls, or use 127.0.0.1 or a unix socket",
            services.listen,
        )


def _check_addresses(services: ServicesConfig, report: Report) -> None:
    for name, targets in services.addresses.items():
        path: Path = ("services", "addresses", name.value)
        texts = (targets,) if isinstance(targets, str) else targets
        if not texts:
            report.fault(path, "must name at least one address", targets)
        addresses = [_find_address(text, path, report) for text in texts]
        if len(texts) > 1:
            _check_several(addresses, path, report)
        if _leave_in_the_clear(name, addresses, services):
            report.warn(path, "calls to it leave this machine without services.tls")
    if ServiceName.EDGE in services.run:
        _check_reachable(services, report)


def _leave_in_the_clear(
    name: ServiceName, addresses: Sequence[Address | None], services: ServicesConfig
) -> bool:
    is_called = ServiceName.EDGE in services.run and name not in services.run
    return (
        is_called
        and services.tls is None
        and any(address is not None and not address.is_private for address in addresses)
    )


def _check_reachable(services: ServicesConfig, report: Report) -> None:
    for name in ServiceName:
        if name not in services.run and name not in services.addresses:
            report.fault(
                ("services", "addresses", name.value),
                f"is missing: {name} does not run here, and the edge needs it; give its address, such as "
                f"dns:///{name}:9400",
            )


def _check_several(addresses: Sequence[Address | None], path: Path, report: Report) -> None:
    versions = {address.ip_version for address in addresses if address is not None}
    if None in versions or len(versions) > 1:
        report.fault(
            path,
            "several addresses must be IP addresses of one version, such as 10.0.0.1:9400; "
            "for a name with several addresses use dns:///name:port alone",
        )


def _find_address(text: str, path: Path, report: Report) -> Address | None:
    try:
        return parse_target(text)
    except ValueError as exc:
        report.fault(path, str(exc), text)
        return None
