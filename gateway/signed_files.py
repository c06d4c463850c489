"""Files of a store that is a folder, under the addresses that storage has signed: for clients without the folder."""

import asyncio
import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from fastapi.responses import FileResponse, Response

from bus_schema.replies import Code
from gateway.api.artifacts import UnsatisfiableRange, parse_range
from gateway.backend import Backend
from gateway.problems import problem_response
from mindbus.errors import Rejected
from mindbus.files.folder_addresses import PATH, FileAddress, signing_key
from mindbus.files.keys import validate_key
from mindbus.files.packs import PACKS, read_place
from mindbus.files.store import FileStore, open_files

router = APIRouter(prefix=PATH, include_in_schema=False)

_EXISTS = "the bytes are there already"
_SAFE = {"Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "private, no-store"}
_DOWNLOAD = {"Content-Disposition": 'attachment; filename="artifact"', "Content-Type": "application/octet-stream"}

Place = Annotated[str, InPath(max_length=400)]
Expires = Annotated[int, Query()]
Signature = Annotated[str, Query(max_length=128)]


class InvalidAddress(Rejected, code=Code.UNAUTHORIZED):
    """The address is not what was signed, or its time is over; ask storage for another."""


class OtherBytes(Rejected, code=Code.CHECKSUM_MISMATCH):
    """The address was signed for other bytes."""


@router.put("/{place:path}")
async def stage(
    place: Place,
    request: Request,
    expires: Expires,
    signature: Signature,
    sha256: Annotated[str, Query(max_length=64)],
    size_bytes: Annotated[int, Query(ge=0)],
) -> Response:
    """Take the bytes that the address was signed for, once."""
    address = FileAddress("PUT", place, expires, sha256, size_bytes)
    target = _root(_admitted(request, address, signature)) / validate_key(place)
    if request.headers.get("content-length") != str(size_bytes):
        raise OtherBytes
    if target.exists() or not await _receive(request, target, address):
        return problem_response(Code.CONFLICT, _EXISTS, 412)
    return Response(status_code=201)


@router.get("/{place:path}")
async def read(place: Place, request: Request, expires: Expires, signature: Signature) -> Response:
    """The bytes, or a range of them."""
    files = _admitted(request, FileAddress("GET", place, expires), signature)
    with suppress(FileNotFoundError):
        if place.startswith(f"{PACKS}/"):
            return _part_of(await asyncio.to_thread(read_place, _root(files), place), request)
        path = _root(files) / validate_key(place)
        return FileResponse(path, headers=_SAFE | _DOWNLOAD, stat_result=path.stat())
    return problem_response(Code.NOT_FOUND, "there is no such file")


def _admitted(request: Request, address: FileAddress, signature: str) -> FileStore:
    """The store, for whoever has an address that is in time. Raises InvalidAddress."""
    backend: Backend = request.app.state.backend
    files = open_files(backend.settings)
    if files.local_root is None or not address.is_valid(signature, signing_key(files.local_root), backend.clock()):
        raise InvalidAddress
    return files


def _root(files: FileStore) -> Path:
    return Path(files.root)


async def _receive(request: Request, target: Path, address: FileAddress) -> bool:
    """Whether the bytes are there now; False if somebody else was first. Raises OtherBytes, OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{secrets.token_hex(8)}.part")
    digest, size_bytes = hashlib.sha256(), 0
    try:
        with part.open("xb") as file:
            async for piece in request.stream():
                size_bytes += len(piece)
                if size_bytes > address.size_bytes:
                    raise OtherBytes
                digest.update(piece)
                await asyncio.to_thread(file.write, piece)
        if (size_bytes, digest.hexdigest()) != (address.size_bytes, address.sha256):
            raise OtherBytes
        with suppress(FileExistsError):
            os.link(part, target)
            return True
        return False
    finally:
        part.unlink(missing_ok=True)


def _part_of(content: bytes, request: Request) -> Response:
    try:
        part = parse_range(request.headers.get("range"), len(content))
    except UnsatisfiableRange as error:
        return problem_response(Code.INVALID, str(error), 416, {"Content-Range": f"bytes */{len(content)}"})
    if part is None:
        return Response(content, headers=_SAFE | _DOWNLOAD)
    shown = {"Content-Range": f"bytes {part.first}-{part.last}/{len(content)}"}
    return Response(content[part.first : part.last + 1], 206, headers=_SAFE | _DOWNLOAD | shown)
