"""The REST listener, its address to the outside, and metrics."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from gateway.config.address import is_host, parse_tcp
from gateway.config.checks.file import check_file
from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import Config, ServiceName, SslConfig

# Below this, windows are so short that URLs are hardly ever asked for twice.
_SHORT_URLS: Final = 1500
_SEGMENTS: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)*")


def check_http(config: Config, report: Report) -> None:
    if not is_host(config.host):
        report.fault(("host",), "must be a host name or an IP address without brackets", config.host)
    _check_endpoint(config.endpoint, report)
    if config.public_url and (message := find_url_fault(config.public_url)):
        report.fault(("publicUrl",), message, config.public_url)
    elif not config.public_url and ServiceName.EDGE in config.services.run and _is_everywhere(config.host):
        report.warn(
            ("publicUrl",),
            f"is missing: recipients elsewhere would be given URLs of this machine, as {config.host} stands "
            "for all its addresses; set the address that they use",
        )
    _check_url_life(config, report)
    _check_hints(config, report)
    _check_metrics(config, report)
    for index, text in enumerate(config.http.trusted_proxies):
        _check_network(text, ("http", "trustedProxies", index), report)
    if config.ssl is not None and ServiceName.EDGE in config.services.run:
        _check_ssl(config.ssl, report)
    if config.http.workers > 1 and report.is_intact(("services", "run")):
        _check_workers(config, report)


def _check_url_life(config: Config, report: Report) -> None:
    seconds = config.pre_signed_url_timeout_seconds
    if seconds < _SHORT_URLS:
        report.warn(
            ("preSignedUrlTimeoutSeconds",),
            f"is {seconds}: clients renew URLs a quarter of an hour ahead; those of less than {_SHORT_URLS} "
            "seconds are signed and asked for over and over",
        )


def _check_hints(config: Config, report: Report) -> None:
    # The reference server has a key for each of two ways to evaluate them; either of them is enough.
    keys = {
        "evaluateJsonPredicateHints": config.evaluate_json_predicate_hints,
        "evaluateJsonPredicateHintsV2": config.evaluate_json_predicate_hints_v2,
    }
    if sorted(keys.values()) == [False, True]:
        off, on = sorted(keys, key=keys.__getitem__)
        report.warn(
            (off,), f"changes nothing by itself, as {on} is true: to turn JSON hints off, set both to false"
        )


def _check_workers(config: Config, report: Report) -> None:
    path: Path = ("http", "workers")
    if set(config.services.run) != {ServiceName.EDGE}:
        message = "must be 1 unless the process runs the edge alone: set services.run to [edge]"
        report.fault(path, message, config.http.workers)
    elif config.ssl is not None and config.ssl.self_signed:
        message = "must be 1 with ssl.selfSigned, as each would make a certificate of its own"
        report.fault(path, message, config.http.workers)


def _check_endpoint(endpoint: str, report: Report) -> None:
    if endpoint != "/" and not _SEGMENTS.fullmatch(endpoint):
        message = "must begin with / and not end with it, such as /delta-sharing, or be / alone"
        report.fault(("endpoint",), message, endpoint)


def find_url_fault(url: str) -> str:
    """Return what is wrong with a URL that recipients are to use, or an empty text."""
    parts = _split(url)
    if parts is None or parts.scheme not in {"http", "https"} or not is_host(parts.hostname or ""):
        return "must be an http or https URL, such as https://sharing.example.com/delta-sharing"
    if "?" in url or "#" in url:
        return "must not have a query or fragment"
    if "@" in parts.netloc:
        return "must not have a user or password"
    if not _SEGMENTS.fullmatch(parts.path.rstrip("/")):
        return "must have a path of letters, digits and ._~- only"
    return ""


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        # Reading the port is what checks it.
        return parts if url.isprintable() and " " not in url and parts.port != 0 else None
    except ValueError:
        return None


def _check_metrics(config: Config, report: Report) -> None:
    path: Path = ("metrics", "listen")
    try:
        address = parse_tcp(config.metrics.listen)
    except ValueError as exc:
        report.fault(path, str(exc), config.metrics.listen)
        return
    is_taken = address.port and (address.host, address.port) == (config.host, config.port)
    if is_taken and ServiceName.EDGE in config.services.run:
        report.fault(path, "is where the REST protocol is served; choose another port", config.metrics.listen)


def _check_network(text: str, path: Path, report: Report) -> None:
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        report.fault(path, "must be an IP address or network, such as 10.0.0.0/8", text)
        return
    if not network.prefixlen:
        report.warn(
            path,
            f"is {text}, which is everybody: clients could choose the address that stands in the audit log; "
            "name the proxies",
        )


def _check_ssl(ssl: SslConfig, report: Report) -> None:
    if ssl.self_signed:
        return
    for key, file in (
        ("certificateFile", ssl.certificate_file),
        ("certificateKeyFile", ssl.certificate_key_file),
    ):
        if file:
            check_file(file, ("ssl", key), report)
        else:
            report.fault(("ssl", key), "is missing; give it, or selfSigned: true")
    if ssl.certificate_password_file:
        check_file(ssl.certificate_password_file, ("ssl", "certificatePasswordFile"), report)
