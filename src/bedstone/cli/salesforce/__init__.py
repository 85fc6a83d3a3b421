"""`bedstone salesforce`: orgs to log in to, query and sync, and the demo org."""

import click

from bedstone.cli.salesforce.demo import demo
from bedstone.cli.salesforce.login import list_orgs, login
from bedstone.cli.salesforce.query import describe, query, search
from bedstone.cli.salesforce.sync import sync_knowledge, sync_schema


@click.group(commands=[login, list_orgs, query, search, describe, sync_knowledge, sync_schema, demo])
def salesforce() -> None:
    """Log in to Salesforce orgs, query, search, describe and sync them; run a demo org."""
