"""Standard input and output over everything a client may connect them to."""

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from support.processes import BEDSTONE, clean_environment

CALLS = 150  # together more than any pipe or socket holds
TEXT = "Solid ground for agents. " * 4_000
COMMAND = (BEDSTONE, "serve", "--toolsets", "kb", "--kb-file")
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def message(method: str, **fields: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, **fields}).encode() + b"\n"


OPENING = (message("initialize", id=0, params=INITIALIZE), message("notifications/initialized"))


def call(number: int) -> bytes:
    return message("tools/call", id=number, params={"name": "get_kb_content", "arguments": {}})


def read(lines: IO[bytes], count: int) -> dict[int, Any]:
    answers = [json.loads(lines.readline()) for _ in range(count)]
    return {answer["id"]: answer["result"] for answer in answers}


def text_of(answer: Any) -> str:
    return str(answer["structuredContent"]["content"])


@pytest.fixture
def kb_file(tmp_path: Path) -> Path:
    path = tmp_path / "kb.txt"
    path.write_text(TEXT)
    return path


@dataclass(frozen=True)
class Connected:
    """A server, and the ends of a client."""

    process: "subprocess.Popen[bytes]"
    requests: IO[bytes]
    answers: IO[bytes]


@pytest.fixture(params=["pipes", "pipes that do not block", "sockets"])  # sockets: as clients on Node.js connect
def connected(request: pytest.FixtureRequest, kb_file: Path) -> Iterator[Connected]:
    command: list[str | Path] = [*COMMAND, kb_file]
    if request.param != "sockets":
        (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
        os.set_blocking(theirs_in, request.param == "pipes")
        os.set_blocking(theirs_out, request.param == "pipes")
    else:
        (theirs_in, ours_in), (ours_out, theirs_out) = (
            (near.detach(), far.detach()) for near, far in (socket.socketpair(), socket.socketpair())
        )
    process = subprocess.Popen(command, stdin=theirs_in, stdout=theirs_out, env=clean_environment())
    os.close(theirs_in)
    os.close(theirs_out)
    requests, answers = os.fdopen(ours_in, "wb", buffering=0), os.fdopen(ours_out, "rb")
    try:
        yield Connected(process, requests, answers)
    finally:
        process.kill()
        process.wait()
        for file in (requests, answers):
            file.close()


def test_a_client_that_reads_late_gets_every_answer_in_one_piece(connected: Connected) -> None:
    lines = [*OPENING, *(call(at) for at in range(1, CALLS))]
    write = threading.Thread(target=lambda: [connected.requests.write(line) for line in lines])  # it may have to wait
    write.start()
    answers = read(connected.answers, CALLS)
    write.join()
    assert sorted(answers) == list(range(CALLS))
    assert all(text_of(answers[at]) == TEXT for at in range(1, CALLS))


def test_requests_may_arrive_in_pieces_and_several_at_once(connected: Connected) -> None:
    sent = b"".join([*OPENING, call(1), call(2)])
    for at in range(0, len(sent), 7):
        connected.requests.write(sent[at : at + 7])
    assert sorted(read(connected.answers, 3)) == [0, 1, 2]
    connected.requests.write(message("ping", id=3).rstrip(b"\n"))  # the last line may lack its end
    connected.requests.close()
    assert json.loads(connected.answers.readline())["id"] == 3
    assert connected.process.wait(20) == 0


def test_a_client_that_leaves_ends_the_server(connected: Connected) -> None:
    for line in [*OPENING, *(call(at) for at in range(1, 20))]:
        connected.requests.write(line)
    connected.answers.readline()
    connected.answers.close()
    connected.requests.close()
    assert connected.process.wait(20) == 0


def test_requests_may_come_from_a_file_and_answers_go_to_one(kb_file: Path, tmp_path: Path) -> None:
    asked, answered = tmp_path / "requests", tmp_path / "answers"
    asked.write_bytes(b"".join([*OPENING, *(call(at) for at in range(1, 30))]))
    with asked.open("rb") as stdin, answered.open("wb") as stdout:
        subprocess.run([*COMMAND, kb_file], stdin=stdin, stdout=stdout, env=clean_environment(), check=True, timeout=60)
    with answered.open("rb") as lines:
        assert sorted(read(lines, 30)) == list(range(30))
