"""Receive files that a browser sends: into a folder of the server, from which they are added."""

import secrets
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path, PurePath
from urllib.parse import unquote

import anyio
from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from bedstone.permissions import make_private_folder
from bedstone.settings.layout import UPLOADS

UPLOAD_SECONDS = 24 * 3600  # what is older was left by a server that was killed
MAX_NAME_BYTES = 200
MEGABYTE = 1024 * 1024


@asynccontextmanager
async def receive_upload(request: Request, data_folder: Path, max_mb: int) -> AsyncIterator[Path]:
    """Receive the file of a request, checking its size on the way; it is deleted at the end."""
    folder = data_folder / UPLOADS / secrets.token_hex(8)
    await to_thread.run_sync(make_private_folder, folder)
    file = folder / file_name(request.headers.get("x-filename", ""))
    try:
        await _receive(request, file, max_mb)
        yield file
    finally:
        await to_thread.run_sync(_delete, folder)


async def _receive(request: Request, file: Path, max_mb: int) -> None:
    size = 0
    try:
        async with await anyio.open_file(file, "xb") as target:
            async for part in request.stream():
                size += len(part)
                if size > max_mb * MEGABYTE:
                    raise HTTPException(413, f"The file is larger than {max_mb} MB.")
                await target.write(part)
    except ClientDisconnect:
        raise HTTPException(400, "Upload interrupted.") from None


def file_name(header: str) -> str:
    """Return a file name as it was before it became a header; file systems accept it."""
    outer = PurePath(header.replace("\\", "/")).name or "file"
    plain = PurePath(unquote(outer).replace("\\", "/")).name
    return _shorten(plain if plain not in ("", ".", "..") and "\0" not in plain else "file")


def _shorten(name: str) -> str:
    """Return the beginning of a name, and always its suffix."""
    path = PurePath(name)
    suffix = path.suffix[:20]
    stem = path.name.removesuffix(path.suffix).encode()[: MAX_NAME_BYTES - len(suffix.encode())].decode(errors="ignore")
    return f"{stem or 'file'}{suffix}"


def sweep_uploads(folder: Path) -> None:
    """Delete what a killed server left; recent files may be on their way to another server of this folder."""
    for upload in (folder / UPLOADS).glob("*"):
        if time.time() - upload.stat().st_mtime > UPLOAD_SECONDS:
            _delete(upload)


def _delete(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
