"""Reads tables that are shared by a Delta Sharing gateway, with credentials that renew themselves."""

from sluice_recipient.address import TableName
from sluice_recipient.client import TableInfo
from sluice_recipient.credential import AwsKeys, AzureSas, Credential, GcpToken
from sluice_recipient.errors import (
    AccessDenied,
    NotFound,
    NotInstalled,
    NotUsable,
    ProfileError,
    RecipientError,
    Refused,
    StaticCredentialWarning,
    Unavailable,
)
from sluice_recipient.table import SharedTable, open_table

__all__ = [
    "AccessDenied",
    "AwsKeys",
    "AzureSas",
    "Credential",
    "GcpToken",
    "NotFound",
    "NotInstalled",
    "NotUsable",
    "ProfileError",
    "RecipientError",
    "Refused",
    "SharedTable",
    "StaticCredentialWarning",
    "TableInfo",
    "TableName",
    "Unavailable",
    "open_table",
]
