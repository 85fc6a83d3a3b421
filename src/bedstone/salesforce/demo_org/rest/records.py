"""Routes for records: create, read, update and delete by id or by an external id."""

from bedstone.salesforce.demo_org.errors import ApiError, not_found
from bedstone.salesforce.demo_org.rest.messages import Request, Response
from bedstone.salesforce.demo_org.rest.routes import Routes, route
from bedstone.salesforce.soql.quoting import soql_string


class RecordRoutes(Routes):
    """/sobjects/<object> and below."""

    @route("POST", r"sobjects/(?P<name>\w+)")
    def _create(self, request: Request, base: str, name: str) -> Response:
        name = self._state.object(name).name
        record = self._org.create(name, request.json_object())
        headers = {"Location": f"{base}/sobjects/{name}/{record}"}
        return Response(201, {"id": record, "success": True, "errors": []}, headers)

    @route("GET PATCH DELETE", r"sobjects/(?P<name>\w+)/(?P<record>[A-Za-z0-9]{15,18})")
    def _record(self, request: Request, base: str, name: str, record: str) -> Response:
        name = self._state.object(name).name
        if request.method == "GET":
            fields = [field.strip() for field in request.names("fields") if field.strip()]
            return Response(body=self._org.read(name, record, base, fields or None))
        if request.method == "DELETE":
            self._org.delete(name, record)
        else:
            self._org.update(name, record, request.json_object())
        return Response(204)

    @route("GET PATCH DELETE", r"sobjects/(?P<name>\w+)/(?P<key>\w+)/(?P<value>[^/]+)")
    def _by_external_id(self, request: Request, base: str, name: str, key: str, value: str) -> Response:
        item = self._state.object(name)
        if request.method == "PATCH":
            record, is_new = self._org.upsert(item.name, key, value, request.json_object())
            return Response(201 if is_new else 200, {"id": record, "success": True, "errors": [], "created": is_new})
        field = item.field(key)
        if field is None or not field.external_id:
            message = f"Provided external ID field does not exist or is not accessible: {key}"
            raise ApiError("NOT_FOUND", message, status=404)
        statement = f"SELECT Id FROM {item.name} WHERE {field.name} = {soql_string(value)}"
        rows = self._org.queries.run(statement, base)["records"]
        if not rows:
            raise not_found()
        if len(rows) > 1:
            return Response(300, [row["attributes"]["url"] for row in rows])
        return self._record(request, base, name, rows[0]["Id"])
