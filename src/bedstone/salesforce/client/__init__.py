"""A client for Salesforce orgs."""

from bedstone.salesforce.client.client import SalesforceClient, Usage
from bedstone.salesforce.client.errors import (
    AuthError,
    LimitExceeded,
    OrgUnavailable,
    PermissionDenied,
    RecordNotFound,
    SalesforceError,
)

__all__ = [
    "AuthError",
    "LimitExceeded",
    "OrgUnavailable",
    "PermissionDenied",
    "RecordNotFound",
    "SalesforceClient",
    "SalesforceError",
    "Usage",
]
