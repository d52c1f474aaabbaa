"""What the services and the edge need from the world, in their own words."""

from __future__ import annotations

from gateway.ports.audit import AuditLog
from gateway.ports.catalog import CatalogStore, ServiceDirectory
from gateway.ports.clock import Clock, utcnow
from gateway.ports.issuing import CredentialIssuer, Cut, Cutter, Probe
from gateway.ports.log import LogFile, LogReader
from gateway.ports.metrics import CallerMetrics, HttpMetrics, RpcMetrics, SnapshotMetrics
from gateway.ports.rate import RateBuckets
from gateway.ports.signing import Sessions, Signatures, Signer, SigningCost
from gateway.ports.state import Jobs, StateEntry, StateKey, StateStore
from gateway.ports.storage import (
    OptionFault,
    SparkAccess,
    Storage,
    StorageMetrics,
    Storages,
    StorageSettings,
    Vendor,
)

__all__ = [
    "AuditLog",
    "CallerMetrics",
    "CatalogStore",
    "Clock",
    "CredentialIssuer",
    "Cut",
    "Cutter",
    "HttpMetrics",
    "Jobs",
    "LogFile",
    "LogReader",
    "OptionFault",
    "Probe",
    "RateBuckets",
    "RpcMetrics",
    "ServiceDirectory",
    "Sessions",
    "Signatures",
    "Signer",
    "SigningCost",
    "SnapshotMetrics",
    "SparkAccess",
    "StateEntry",
    "StateKey",
    "StateStore",
    "Storage",
    "StorageMetrics",
    "StorageSettings",
    "Storages",
    "Vendor",
    "utcnow",
]
