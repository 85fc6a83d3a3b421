"""The `sf` command, unchanged, against the demo org."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bedstone.salesforce.client import AuthError, SalesforceClient
from bedstone.salesforce.client.auth import SfCli
from support.demo_org import Running
from support.node import command_of

CLI = "@salesforce/cli@2.146.3"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def environment(demo: Running, home: Path) -> dict[str, str]:
    folders = (Path(command_of(CLI, "sf")).parent, Path(sys.executable).parent, os.environ["PATH"])
    return {
        "PATH": os.pathsep.join(map(str, folders)),
        "HOME": str(home),
        "SF_USE_GENERIC_UNIX_KEYCHAIN": "true",
        "SF_DISABLE_TELEMETRY": "true",
        "SF_SKIP_NEW_VERSION_CHECK": "true",
        "SF_DISABLE_AUTOUPDATE": "true",
        "SF_ACCESS_TOKEN": demo.token,
    }


def sf(demo: Running, home: Path, *arguments: str) -> Any:
    done = subprocess.run(
        [command_of(CLI, "sf"), *arguments, "--json"],
        env=environment(demo, home),
        cwd=home,
        check=False,
        text=True,
        capture_output=True,
        timeout=180,
    )
    answer = json.loads(done.stdout)
    assert answer["status"] == 0, answer
    return answer["result"]


def test_it_logs_in_reads_searches_and_changes(demo: Running, home: Path) -> None:
    url = f"http://localhost:{demo.port}"
    sf(demo, home, "org", "login", "access-token", "--instance-url", url, "--alias", "demo", "--no-prompt")
    org = ("--target-org", "demo")
    rows = sf(demo, home, "data", "query", "--query", "SELECT Id, Name, Owner.Name FROM Account LIMIT 3", *org)
    assert (rows["totalSize"], rows["records"][0]["Name"]) == (3, "O'Connor's Bikes")
    made = sf(demo, home, "data", "create", "record", "--sobject", "Lead", "--values", "LastName=X Company=Y", *org)
    changed = ("--sobject", "Lead", "--record-id", made["id"])
    sf(demo, home, "data", "update", "record", *changed, "--values", "FirstName=Z", *org)
    assert sf(demo, home, "data", "get", "record", *changed, *org)["Name"] == "Z X"
    sf(demo, home, "data", "delete", "record", *changed, *org)
    described = sf(demo, home, "sobject", "describe", "--sobject", "Bike__c", *org)
    assert {field["name"] for field in described["fields"]} >= {"Frame_Number__c"}
    found = sf(demo, home, "data", "search", "--query", "FIND {Connor} RETURNING Account(Id, Name)", *org)
    assert "O'Connor's Bikes" in json.dumps(found)


async def test_its_orgs_are_ours_too(demo: Running, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(demo, home).items():
        monkeypatch.setenv(name, value)
    async with SalesforceClient(SfCli("demo")) as client:
        assert (await client.query("SELECT COUNT() FROM Account"))["totalSize"] == 240
    async with SalesforceClient(SfCli("nobody")) as client:
        with pytest.raises(AuthError):
            await client.limits()
