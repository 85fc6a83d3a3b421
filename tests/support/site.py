"""The pages in this process: a client without a network, a browser or a server."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import anyio
import httpx2
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from bedstone.app import App, open_app
from bedstone.settings import Settings
from bedstone.transports.attempts import Attempts
from bedstone.transports.page_sessions import PageSessions
from bedstone.web import PageOptions, page_routes
from bedstone.web.frame import ClientSetup

BASE = "http://localhost:3000"
BROWSER = {"accept": "text/html"}
LINK = re.compile(r'(?:href|src)="([^"]*)"')


@dataclass(frozen=True)
class Site:
    """The pages of an open product, and a client that asks for them."""

    app: App
    http: httpx2.AsyncClient
    routes: list[BaseRoute]

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self.http.get(path, headers=BROWSER | headers)

    async def text(self, path: str, status: int = 200) -> str:
        """Return a page that must have this status."""
        response = await self.get(path)
        assert response.status_code == status, f"{path}: {response.status_code} {response.text}"
        return response.text

    async def csrf(self) -> str:
        found = re.search(r'name="csrf" content="(\w+)"', await self.text("/"))
        assert found
        return found[1]

    async def post(self, path: str, form: Mapping[str, Any] | None = None, **headers: str) -> httpx2.Response:
        """Send a form of a page, with its token in the header as scripts do."""
        return await self.http.post(path, data=form or {}, headers={"x-csrf": await self.csrf()} | headers)

    async def add(self, name: str, content: bytes) -> str:
        """Upload a file and return the id of its document."""
        headers = {"x-csrf": await self.csrf(), "x-filename": name}
        response = await self.http.post("/documents", content=content, headers=headers)
        assert response.status_code == 202, response.text
        task = response.json()["task_id"]
        with anyio.fail_after(60):
            events = (await self.get(f"/tasks?ids={task}")).text
        found = re.search(r'"document_id": "([^"]+)"', events)
        assert found, events
        return found[1]


@asynccontextmanager
async def open_site(settings: Settings) -> AsyncIterator[Site]:
    """Open the product with these settings and serve its pages in this process."""
    token = settings.access_token
    async with open_app(settings) as app:
        options = PageOptions(
            client_setups=lambda base: [ClientSetup("some", "Some client", "Paste this:", f'{{"url": "{base}/mcp"}}')],
            data_folder=settings.data_folder,
            read_only=settings.read_only,
            token=token,
            sessions=PageSessions(token) if token else None,
            attempts=Attempts(),
        )
        routes = page_routes(app.services, app.toolsets, options)
        pages = Starlette(routes=routes)
        transport = httpx2.ASGITransport(app=pages, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url=BASE, timeout=60) as http:
            yield Site(app, http, routes)


def make_settings(folder: Path, *toolsets: str, **sections: Any) -> Settings:
    """Return settings for a data folder, without a model."""
    given = {"data_dir": folder / "data", "toolsets": list(toolsets), "embedding": {"provider": "none"}}
    return Settings.model_validate(given | sections)


def links(page: str) -> set[str]:
    """Return the addresses on this server that a page links to."""
    found = {unescape(address).partition("#")[0] for address in LINK.findall(page)}
    return {address for address in found if address.startswith(("/", "?"))}
