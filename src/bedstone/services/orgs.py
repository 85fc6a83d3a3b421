"""The Salesforce orgs that the settings know, and clients for them."""

from typing import TYPE_CHECKING

from bedstone.settings import Settings, layout

if TYPE_CHECKING:
    from bedstone.salesforce.client import SalesforceClient
    from bedstone.salesforce.client.orgs import Org, Orgs

DEMO_ORG = "demo"


def open_orgs(settings: Settings) -> "Orgs":
    """Return the orgs that users have logged into."""
    from bedstone.salesforce.client.orgs import Orgs  # noqa: PLC0415 - loads an HTTP client

    return Orgs(layout.salesforce(settings))


def open_client(orgs: "Orgs", org: "Org") -> "SalesforceClient":
    """Return a client of an org."""
    from bedstone.salesforce.client import SalesforceClient  # noqa: PLC0415 - loads an HTTP client

    return SalesforceClient(orgs.auth(org), read_only=org.read_only)


def default_org(settings: Settings) -> str | None:
    """Return the org to query when the caller names none; None means the only one there is."""
    return settings.salesforce.org or (DEMO_ORG if settings.salesforce.demo_port is not None else None)


def has_org(settings: Settings) -> bool:
    """Return whether there is an org to query."""
    if default_org(settings) is not None:
        return True
    return (layout.salesforce(settings) / "orgs.json").exists() and bool(open_orgs(settings).all())
