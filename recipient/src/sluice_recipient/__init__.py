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
from sluice_recipient.listing import SharedFile
from sluice_recipient.table import SharedTable, open_table
from sluice_recipient.url_files import UrlFiles

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
    "SharedFile",
    "SharedTable",
    "StaticCredentialWarning",
    "TableInfo",
    "TableName",
    "Unavailable",
    "UrlFiles",
    "open_table",
]
