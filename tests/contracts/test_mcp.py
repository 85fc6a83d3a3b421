"""What the contracts say about the protocol itself, through every door."""

import json
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import anyio
import httpx2
import mcp_types as wire
import pytest
from anyio.streams.text import TextReceiveStream
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ServerEvent
from mcp.server.subscriptions import ToolsListChanged
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import ConnectionClosedError

from contracts.requirements import proves
from support.doors import DOORS, HANDSHAKE, MODERN, Door, payload, serving, websocket_client
from support.processes import BEDSTONE, clean_environment
from support.workshop import Workshop

INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


NAMES = ["repeat", "paint", "count", "wait", "break", "misfit", "delegate"]


@pytest.fixture
def workshop() -> Workshop:
    return Workshop()


@pytest.fixture(params=DOORS)
async def door(request: pytest.FixtureRequest, workshop: Workshop) -> AsyncIterator[Door]:
    async with DOORS[request.param]([workshop]) as door:
        yield door


@pytest.fixture
async def base(workshop: Workshop) -> AsyncIterator[str]:
    async with serving([workshop]) as base:
        yield base


@proves("mcp.tools.same-everywhere")
async def test_every_door_gives_the_same_answers(door: Door) -> None:
    assert [tool.name for tool in await door.list_tools()] == NAMES
    answer = await door.call("repeat", {"word": "ja", "times": 2, "async": True})
    assert payload(answer) == {"said": "ja ja", "nextWord": None}
    assert answer.structured_content == payload(answer)
    text = await door.call("paint", {"colour": "red"})
    assert text.content == [wire.TextContent(type="text", text="Painted red")]
    assert text.structured_content is None
    assert (await door.read("shelf:///7")).contents[0].text == "In box 7"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "code", "parameter"),
    [
        ({}, "missing_argument", "word"),
        ({"word": ""}, "invalid_input", "word"),
        ({"word": 5}, "invalid_input", "word"),
        ({"word": "a", "times": "2"}, "invalid_input", "times"),
        ({"word": "a", "times": 6}, "invalid_input", "times"),
        ({"word": "a", "in_background": True}, "unknown_argument", "in_background"),
        ({"word": "a", "colour": "red"}, "unknown_argument", "colour"),
    ],
)
async def test_bad_arguments_get_the_toolsets_error(
    door: Door, arguments: dict[str, Any], code: str, parameter: str
) -> None:
    answer = await door.call("repeat", arguments)
    assert answer.is_error
    assert answer.structured_content is None
    assert (payload(answer)["error"], payload(answer)["parameter"]) == (code, parameter)


async def test_a_whole_number_may_have_a_point(door: Door) -> None:
    assert payload(await door.call("repeat", {"word": "a", "times": 2.0}))["said"] == "a a"


@pytest.mark.parametrize("name", ["memory-2026", "http-handshake", "plain"])
async def test_read_only_refuses_what_would_change_something(name: str) -> None:
    workshop = Workshop(read_only=True)
    async with DOORS[name]([workshop]) as door:
        refused = await door.call("paint", {"colour": "red"})
        assert not (await door.call("repeat", {"word": "a"})).is_error
    assert refused.is_error
    assert payload(refused)["error"] == "read_only"
    assert workshop.painted == 0


async def test_what_a_resource_cannot_give_keeps_its_sentence(door: Door) -> None:
    with pytest.raises(MCPError) as error:
        await door.read("shelf:///burnt")
    assert (error.value.code, error.value.message) == (-32000, "The box has burnt")


async def test_an_error_inside_a_task_group_keeps_its_shape(door: Door) -> None:
    answer = await door.call("delegate")
    assert answer.is_error
    assert payload(answer)["error"] == "unavailable"


async def test_a_result_that_does_not_fit_is_our_defect(door: Door) -> None:
    with pytest.raises(MCPError) as error:
        await door.call("misfit")
    assert error.value.code == -32603


async def test_null_means_left_out(door: Door) -> None:
    assert payload(await door.call("repeat", {"word": "a", "times": None}))["said"] == "a"


@proves("mcp.error.unknown-tool")
async def test_an_unknown_tool_is_invalid_params(door: Door) -> None:
    with pytest.raises(MCPError) as error:
        await door.call("hammer")
    assert (error.value.code, error.value.message) == (-32602, "Unknown tool: hammer")


@proves("mcp.error.unknown-method")
async def test_an_unknown_method_is_not_found(door: Door) -> None:
    with pytest.raises(MCPError) as error:
        await door.send("tools/borrow", {})
    assert error.value.code == -32601


@proves("mcp.error.data")
async def test_a_protocol_error_says_its_type_and_details(door: Door) -> None:
    problems = [{"parameter": "taskId", "problem": "Field required"}]
    for method, params, error_type, details in (
        ("tools/borrow", {}, "method_not_found", {"method": "tools/borrow"}),
        ("tools/call", {"name": "hammer"}, "validation_error", {"method": "tools/call"}),
        ("tools/call", {"name": "break"}, "internal_error", {}),
        ("tools/cancel", {"task": "x"}, "validation_error", {"problems": problems}),
        ("resources/read", {"uri": "shelf:///burnt"}, "unavailable", {"box": "burnt"}),
        ("prompts/get", {"name": "none"}, "validation_error", {"method": "prompts/get"}),
    ):
        with pytest.raises(MCPError) as error:
            await door.send(method, params)
        assert error.value.error.data == {"error_type": error_type, "details": details}


@proves("mcp.error.data")
@pytest.mark.parametrize("version", [{}, {"jsonrpc": "1.0"}, {"jsonrpc": 2.0}, {"jsonrpc": ""}])
async def test_only_messages_of_json_rpc_2_are_accepted(base: str, version: dict[str, object]) -> None:
    message = version | {"id": 7, "method": "tools/list"}
    async with httpx2.AsyncClient() as http, connect_websocket(f"{base}/mcp".replace("http", "ws")) as socket:
        responses = [await http.post(f"{base}{path}", json=message) for path in ("/mcp", "/mcp/tools/list")]
        await socket.send(json.dumps(message))
        answers = [json.loads(await socket.recv()), *(response.json() for response in responses)]
    assert {response.status_code for response in responses} == {400}
    for answer in answers:
        assert (answer["id"], answer["error"]["code"]) == (7, -32600)
        assert answer["error"]["data"] == {"error_type": "invalid_request", "details": {}}


@proves("mcp.error.internal")
async def test_a_defect_keeps_its_text_to_itself(door: Door) -> None:
    with pytest.raises(MCPError) as error:
        await door.call("break")
    assert error.value.code == -32603
    assert "tulip" not in str(error.value.error)
    assert payload(await door.call("repeat", {"word": "alive"}))["said"] == "alive"


@proves("mcp.error.unknown-resource")
@pytest.mark.parametrize("name", DOORS)
async def test_an_unknown_resource_has_the_code_of_its_era(name: str, workshop: Workshop) -> None:
    async with DOORS[name]([workshop]) as door:
        with pytest.raises(MCPError) as error:
            await door.read("cellar:///1")
    assert error.value.code == (-32602 if name.endswith("2026") else -32002)


async def test_lists_are_paged_with_opaque_cursors(door: Door) -> None:
    seen, cursor = 0, None
    for _ in range(3):
        page = await door.send("resources/list", {"cursor": cursor} if cursor else {})
        seen, cursor = seen + len(page["resources"]), page.get("nextCursor")
    assert (seen, cursor) == (1_200, None)
    with pytest.raises(MCPError) as error:
        await door.send("resources/list", {"cursor": "nonsense"})
    assert error.value.code == -32602


async def test_prompts_and_completions_work(door: Door) -> None:
    assert [prompt["name"] for prompt in (await door.send("prompts/list", {}))["prompts"]] == ["greet"]
    messages = (await door.send("prompts/get", {"name": "greet"}))["messages"]
    assert messages[0]["content"]["text"] == "Hello"
    with pytest.raises(MCPError) as error:
        await door.send("prompts/get", {"name": "insult"})
    assert error.value.code == -32602
    reference = {"type": "ref/resource", "uri": "shelf:///{number}"}
    answer = await door.send("completion/complete", {"ref": reference, "argument": {"name": "number", "value": "11"}})
    assert answer["completion"]["values"][:2] == ["11", "110"]
    everything = await door.send("completion/complete", {"ref": reference, "argument": {"name": "number", "value": ""}})
    assert len(everything["completion"]["values"]) == 100
    assert everything["completion"]["hasMore"] is True


@proves("mcp.cancel.task")
async def test_background_tasks_are_cancelled_by_request(door: Door, workshop: Workshop) -> None:
    answer = await door.send("tools/cancel", {"taskId": "task-1"})
    assert (answer["taskId"], answer["cancelled"]) == ("task-1", True)
    assert workshop.tasks["task-1"] == "cancelled"
    assert (await door.send("tools/cancel", {"taskId": "task-2"}))["cancelled"] is False
    for params in ({"taskId": "task-9"}, {}):
        with pytest.raises(MCPError) as error:
            await door.send("tools/cancel", params)
        assert error.value.code == -32602


@proves("mcp.cancel.task", "mcp.websocket")
async def test_background_tasks_are_cancelled_by_notification(base: str, workshop: Workshop) -> None:
    notice = {"jsonrpc": "2.0", "method": "tools/cancel", "params": {"taskId": "task-1"}}
    async with connect_websocket(f"{base}/mcp".replace("http", "ws")) as socket:
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}))
        assert json.loads(await socket.recv())["result"]["serverInfo"]["name"] == "bedstone"
        await socket.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        await socket.send(json.dumps(notice))
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}))
        await socket.recv()
        unknown = notice | {"params": {"taskId": "task-9"}}
        await socket.send(json.dumps(unknown))
    assert workshop.tasks["task-1"] == "cancelled"
    workshop.tasks["task-1"] = "running"
    async with httpx2.AsyncClient() as http:
        response = await http.post(f"{base}/mcp/tools/cancel", json=notice)
    assert (response.status_code, response.content) == (202, b"")
    assert workshop.tasks["task-1"] == "cancelled"


@proves("mcp.progress")
@pytest.mark.parametrize("name", [name for name in DOORS if not name.endswith(("plain", "bare"))])
async def test_progress_reaches_the_caller(name: str, workshop: Workshop) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with DOORS[name]([workshop]) as door:
        await door.client.call_tool("count", {}, progress_callback=note)  # type: ignore[attr-defined]
    assert seen == [(1, 3, "Step 1 of 3"), (2, 3, "Step 2 of 3"), (3, 3, "Step 3 of 3")]


@pytest.mark.needs_session("http-handshake")
@proves("mcp.cancel.request")
async def test_a_cancelled_call_stops_at_once(door: Door, workshop: Workshop) -> None:
    """The client says notifications/cancelled, or hangs up where that is how its era says it."""
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(door.call, "wait")
            await workshop.waiting.wait()
            tasks.cancel_scope.cancel()
        await workshop.cancelled.wait()
    assert payload(await door.call("repeat", {"word": "alive"}))["said"] == "alive"


@pytest.mark.needs_session("http-handshake")
@proves("mcp.list-changed")
@pytest.mark.parametrize("name", ["memory-handshake", "sse", "websocket-handshake", "http-handshake"])
async def test_handshake_clients_hear_that_tools_changed(name: str, workshop: Workshop) -> None:
    heard = anyio.Event()

    async def listen(message: Any) -> None:
        if isinstance(message, wire.ToolListChangedNotification):
            heard.set()

    async with DOORS[name]([workshop]) as door:
        door.client.session._message_handler = listen  # type: ignore[attr-defined]  # noqa: SLF001
        await door.list_tools()
        with anyio.fail_after(10):
            while not heard.is_set():  # the standing stream of HTTP opens a moment after the handshake
                await workshop.add_colour("blue")
                await anyio.sleep(0.05)
        tools = {tool.name: tool for tool in await door.list_tools()}
    assert "blue" in tools["paint"].input_schema["properties"]["colour"]["enum"]


@proves("mcp.list-changed")
@pytest.mark.parametrize("transport", ["http", "websocket"])
async def test_modern_clients_hear_that_tools_changed(transport: str, base: str, workshop: Workshop) -> None:
    target = f"{base}/mcp" if transport == "http" else websocket_client(f"{base}/mcp".replace("http", "ws"))
    events: list[ServerEvent] = []
    with anyio.fail_after(10):
        async with Client(target, mode=MODERN) as client, client.listen(tools_list_changed=True) as stream:
            await workshop.add_colour("blue")
            async for event in stream:
                events.append(event)
                break
    assert events == [ToolsListChanged()]


@proves("mcp.version.contract", "mcp.version.all", "mcp.capabilities")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/initialize", "/workshop/mcp/initialize"])
async def test_the_handshake_agrees_on_the_version_asked_for(base: str, path: str, version: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE | {"protocolVersion": version}}
    async with httpx2.AsyncClient() as http:
        result = (await http.post(f"{base}{path}", json=message)).json()["result"]
    assert result["protocolVersion"] == version
    assert result["capabilities"]["tools"] == {"listChanged": True}
    assert result["capabilities"]["prompts"] == {"listChanged": False}
    assert result["capabilities"]["resources"] == {"subscribe": False, "listChanged": False}


@pytest.mark.needs_session
@proves("mcp.version.contract", "mcp.version.all")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_sessions_and_sockets_agree_on_the_version_asked_for(base: str, version: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE | {"protocolVersion": version}}
    headers = [("accept", "application/json"), ("accept", "Text/Event-Stream")]  # a header may come in two lines
    async with httpx2.AsyncClient() as http:
        response = await http.post(f"{base}/mcp", json=message, headers=headers)
    assert response.headers["mcp-session-id"]
    event = next(line for line in response.text.splitlines() if line.startswith("data: {"))
    assert json.loads(event.removeprefix("data: "))["result"]["protocolVersion"] == version
    async with connect_websocket(f"{base}/mcp".replace("http", "ws")) as socket:
        await socket.send(json.dumps(message))
        assert json.loads(await socket.recv())["result"]["protocolVersion"] == version


@proves("mcp.version.all")
@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), (HANDSHAKE, "2025-11-25")])
async def test_clients_of_every_era_connect(base: str, mode: str, version: str) -> None:
    async with Client(f"{base}/mcp", mode=mode) as client:
        assert client.protocol_version == version
        assert client.server_capabilities.tools == wire.ToolsCapability(list_changed=True)
        assert client.server_capabilities.resources == wire.ResourcesCapability(subscribe=False, list_changed=False)


@proves("mcp.plain.initialize")
async def test_plain_initialize_is_lenient(base: str) -> None:
    async with httpx2.AsyncClient() as http:
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        response = await http.post(f"{base}/workshop/mcp/initialize", json=message)
    assert response.json()["result"]["capabilities"]["resources"] == {"subscribe": False, "listChanged": False}
    assert response.json()["result"]["protocolVersion"] == "2025-06-18"


@proves("mcp.plain.initialize")
async def test_a_contract_may_print_less_for_plain_initialize() -> None:
    class Terse(Workshop):
        label = "terse"
        plain_initialize: ClassVar[dict[str, Any]] = {"capabilities": {"resources": {"subscribe": False}}}

    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    async with serving([Terse()]) as base, httpx2.AsyncClient() as http:
        alone = (await http.post(f"{base}/terse/mcp/initialize", json=message)).json()
        async with Client(f"{base}/terse/mcp", mode=HANDSHAKE) as client:
            assert client.protocol_version == "2025-11-25"
    assert alone == {"jsonrpc": "2.0", "id": 1, "result": {"capabilities": {"resources": {"subscribe": False}}}}


@proves("mcp.plain.resources-list", "mcp.plain.templates", "mcp.plain.resources-read")
async def test_plain_resource_endpoints_answer_as_printed(base: str) -> None:
    async with httpx2.AsyncClient() as http:

        async def post(method: str, params: dict[str, Any]) -> Any:
            message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
            response = await http.post(f"{base}/workshop/mcp/{method}", json=message)
            assert (response.status_code, response.json()["id"]) == (200, 7)
            return response.json()["result"]

        first = await post("resources/list", {"cursor": None})
        assert first["resources"][0] == {"uri": "shelf:///0", "name": "Box 0", "mimeType": "text/plain"}
        second = await post("resources/list", {"cursor": first["nextCursor"]})
        last = await post("resources/list", {"cursor": second["nextCursor"]})
        assert last["nextCursor"] is None
        assert await post("resources/templates/list", {}) == {
            "resourceTemplates": [
                {
                    "uriTemplate": "shelf:///{number}",
                    "name": "Box",
                    "description": "A box on the shelf",
                    "mimeType": "text/plain",
                }
            ]
        }
        assert await post("resources/read", {"uri": "shelf:///3"}) == {
            "contents": [{"uri": "shelf:///3", "mimeType": "text/plain", "text": "In box 3"}]
        }
        unknown = {"jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": {"uri": "cellar:///1"}}
        assert (await http.post(f"{base}/mcp/resources/read", json=unknown)).status_code == 404


@proves("mcp.bare.tools-call")
@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/event-stream"])
async def test_a_bare_post_needs_no_handshake(base: str, accept: str) -> None:
    call = {"name": "repeat", "arguments": {"word": "hi"}}
    message = {"jsonrpc": "2.0", "id": "1", "method": "tools/call", "params": call}
    async with httpx2.AsyncClient() as http:
        response = await http.post(f"{base}/mcp", json=message, headers={"accept": accept})
    assert response.headers["content-type"] == "application/json"
    assert response.json()["id"] == "1"
    assert json.loads(response.json()["result"]["content"][0]["text"])["said"] == "hi"


BROKEN = [
    ("{not json", -32700, None),
    ('{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"word": "\\ud800"}}', -32700, 7),
    ('{"jsonrpc": "2.0", "id": 7}', -32600, 7),
    ('{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": [1]}', -32600, "a"),
    ('[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600, None),
    ('"hello"', -32600, None),
]
ODD_ID = ('{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600, None)


@proves("mcp.error.parse", "mcp.error.invalid-request")
@pytest.mark.parametrize(("text", "code", "request_id"), [*BROKEN, ODD_ID])
@pytest.mark.parametrize("version", ["2026-07-28", "2025-06-18"])
async def test_what_is_no_request_is_answered_over_http(
    base: str, text: str, code: int, request_id: int | str | None, version: str
) -> None:
    async with httpx2.AsyncClient(headers={"content-type": "application/json"}) as http:
        bare = (await http.post(f"{base}/mcp", content=text)).json()
        assert bare["error"]["code"] == code
        assert bare["id"] in (request_id, None if code == -32700 else request_id)
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": version}
        response = await http.post(f"{base}/mcp", content=text, headers=headers)
        answer = response.json()
        assert (response.status_code, answer["error"]["code"], answer["id"]) == (400, code, request_id)
        assert "pydantic" not in response.text


@proves("mcp.error.parse", "mcp.error.invalid-request", "mcp.websocket")
@pytest.mark.parametrize(("text", "code", "request_id"), [*BROKEN, ODD_ID])
async def test_what_is_no_request_is_answered_over_websocket(
    base: str, text: str, code: int, request_id: int | str | None
) -> None:
    async with connect_websocket(f"{base}/mcp".replace("http", "ws")) as socket:
        await socket.send(text)
        answer = json.loads(await socket.recv())
        assert (answer["error"]["code"], answer["id"]) == (code, request_id)
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}))
        assert json.loads(await socket.recv())["id"] == 1


@proves("mcp.error.parse", "mcp.error.invalid-request")
async def test_what_is_no_request_is_answered_over_stdio() -> None:
    process = await anyio.open_process([BEDSTONE, "--toolsets", "kb"], stderr=None, env=clean_environment())
    assert process.stdin
    assert process.stdout
    lines = TextReceiveStream(process.stdout)
    with anyio.fail_after(20):
        async with process:
            for text, code, request_id in [*BROKEN, ODD_ID]:
                await process.stdin.send(f"{text}\n".encode())
                answer = json.loads(await lines.receive())
                assert (answer["error"]["code"], answer["id"]) == (code, request_id)
            request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
            await process.stdin.send(json.dumps(request).encode() + b"\n")
            assert json.loads(await lines.receive())["result"]["protocolVersion"] == "2025-06-18"
            await process.stdin.aclose()
            assert await process.wait() == 0


@pytest.mark.parametrize("frames", [[], ["{garbage"]])
async def test_a_socket_that_closes_early_is_no_event(
    base: str, frames: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with connect_websocket(f"{base}/mcp".replace("http", "ws")) as socket:
        for frame in frames:
            await socket.send(frame)
            await socket.recv()
    async with httpx2.AsyncClient() as http:
        assert (await http.get(f"{base}/healthz")).status_code == 200
    assert "Exception" not in caplog.text


async def test_a_trailing_slash_changes_nothing(base: str) -> None:
    for mode in (MODERN, HANDSHAKE):
        async with Client(f"{base}/mcp/", mode=mode) as client:
            assert len((await client.list_tools()).tools) == len(NAMES)
    async with Client(websocket_client(f"{base}/mcp/".replace("http", "ws")), mode=HANDSHAKE) as client:
        assert len((await client.list_tools()).tools) == len(NAMES)


async def test_binary_frames_close_the_socket(base: str) -> None:
    async with connect_websocket(f"{base}/mcp".replace("http", "ws")) as socket:
        await socket.send(b"\x00\x01")
        with pytest.raises(ConnectionClosedError) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1003


async def test_the_method_in_the_body_must_be_that_of_the_path(base: str) -> None:
    async with httpx2.AsyncClient() as http:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        response = await http.post(f"{base}/mcp/resources/list", json=message)
        assert (response.status_code, response.json()["error"]["code"]) == (400, -32600)
        assert response.json()["id"] == 1
        empty = await http.post(f"{base}/mcp/tools/list")
        assert len(empty.json()["result"]["tools"]) == len(NAMES)
        params = await http.post(f"{base}/mcp/tools/call", json={"name": "repeat", "arguments": {"word": "hi"}})
        assert params.json()["result"]["structuredContent"]["said"] == "hi"
        form = await http.post(f"{base}/mcp/tools/list", content="a=1", headers={"content-type": "text/plain"})
        assert form.status_code == 400


async def test_malformed_and_oversized_messages_are_refused_over_sse(base: str) -> None:
    async with httpx2.AsyncClient(headers={"content-type": "application/json"}) as http:
        async with http.stream("GET", f"{base}/sse") as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    address = base + line.removeprefix("data: ")
                    assert (await http.post(address, content="{not json")).status_code == 400
                    assert (await http.post(address, content=" " * 5_000_000)).status_code == 413
                    break
        assert (await http.get(f"{base}/healthz")).status_code == 200


async def test_each_toolset_stands_alone_under_its_own_name(base: str) -> None:
    for transport in (streamable_http_client(f"{base}/workshop/mcp"), sse_client(f"{base}/workshop/sse")):
        async with Client(transport, mode=HANDSHAKE) as client:
            assert client.server_info
            assert client.server_info.name == "workshop"
            assert client.instructions == "A toolset for tests."
            assert len((await client.list_tools()).tools) == len(NAMES)


async def test_json_responses_carry_large_answers_to_handshake_clients() -> None:
    async with serving([Workshop()], json_response=True) as base, Client(f"{base}/mcp", mode=HANDSHAKE) as client:
        word = "x" * 3_000_000
        answer = await client.call_tool("repeat", {"word": word})
    assert payload(answer)["said"] == word
