"""Routes that describe the org: its resources, objects, limits and user."""

from email.utils import format_datetime, parsedate_to_datetime

from bedstone.salesforce.demo_org.content.recipes import NOW
from bedstone.salesforce.demo_org.describe import describe, describe_basic, describe_global, etag
from bedstone.salesforce.demo_org.faults import DAILY_CALLS
from bedstone.salesforce.demo_org.rest.messages import Request, Response
from bedstone.salesforce.demo_org.rest.routes import Routes, route

RESOURCES = (
    *("query", "queryAll", "search", "parameterizedSearch", "sobjects"),
    *("limits", "composite", "tooling", "recent"),
)
TOOLING_OBJECTS = ("ApexClass", "ApexTrigger")


class MetadataRoutes(Routes):
    """Describes and limits."""

    @route("GET", r"")
    def _root(self, request: Request, base: str) -> Response:
        org = self._org
        identity = f"{request.headers.get('origin-of', '')}/id/{org.organization_id}/{org.user}"
        return Response(body={name: f"{base}/{name}" for name in RESOURCES} | {"identity": identity})

    @route("GET", r"sobjects")
    def _list_objects(self, request: Request, base: str) -> Response:
        return Response(body=describe_global(self._state.objects, base))

    @route("GET", r"tooling/sobjects")
    def _list_tooling_objects(self, request: Request, base: str) -> Response:
        objects = [self._state.object(name) for name in TOOLING_OBJECTS]
        return Response(body=describe_global(objects, f"{base}/tooling"))

    @route("GET", r"(?:tooling/)?sobjects/(?P<name>\w+)/describe")
    def _describe(self, request: Request, base: str, name: str) -> Response:
        description = describe(self._org.schema, self._state.object(name), base)
        tag, changed = etag(description), NOW.replace(microsecond=0)
        headers = {"ETag": tag, "Last-Modified": format_datetime(changed, usegmt=True)}
        since = request.headers.get("if-modified-since")
        if request.headers.get("if-none-match") == tag or (since and parsedate_to_datetime(since) >= changed):
            return Response(304, None, headers)
        return Response(200, description, headers)

    @route("GET", r"sobjects/(?P<name>\w+)")
    def _describe_basic(self, request: Request, base: str, name: str) -> Response:
        return Response(body=describe_basic(self._state.object(name), base))

    @route("GET", r"limits")
    def _limits(self, request: Request, base: str) -> Response:
        used = self._state.faults.count_used(self._state.calls)
        return Response(
            body={
                "DailyApiRequests": {"Max": DAILY_CALLS, "Remaining": DAILY_CALLS - used},
                "DailyBulkApiBatches": {"Max": 15_000, "Remaining": 15_000},
                "DataStorageMB": {"Max": 5, "Remaining": 4},
                "FileStorageMB": {"Max": 20, "Remaining": 20},
            }
        )

    @route("GET", r"limits/recordCount")
    def _count_records(self, request: Request, base: str) -> Response:
        counts = []
        for name in request.names("sObjects"):
            answer = self._org.queries.run(f"SELECT COUNT() FROM {self._state.object(name).name}", base)
            counts.append({"count": answer["totalSize"], "name": name})
        return Response(body={"sObjects": counts})

    @route("GET", r"recent")
    def _recent(self, request: Request, base: str) -> Response:
        return Response(body=[])

    @route("GET", r"chatter/users/me")
    def _me(self, request: Request, base: str) -> Response:
        org = self._org
        return Response(body=org.read("User", org.user, base, ["Id", "Name", "Username", "Email"]))
