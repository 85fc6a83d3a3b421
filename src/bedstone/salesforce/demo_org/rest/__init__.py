"""The REST API of the demo org: everything below /services/data."""

from bedstone.salesforce.demo_org.rest.messages import Request, Response
from bedstone.salesforce.demo_org.rest.router import RestApi

__all__ = ["Request", "Response", "RestApi"]
