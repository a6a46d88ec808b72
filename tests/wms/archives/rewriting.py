"""Rewriting of archive files for tests: members changed, and the manifest made to agree or not."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from typing import Any


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rows_of(content: bytes, kind: str) -> list[dict[str, Any]]:
    chunks = (text for name, text in members_of(content).items() if name.startswith(f"{kind}/"))
    return [json.loads(line) for text in chunks for line in text.splitlines()]


def manifest_of(content: bytes) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(members_of(content)["manifest.json"])
    return manifest


def zipped(members: Mapping[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return stream.getvalue()


def with_rows(content: bytes, name: str, change: Callable[[list[Any]], Any]) -> bytes:
    """The archive with other rows in a chunk, and hash and numbers in the manifest as it has them.

    Counts of the manifest stay as they were.
    """
    members = members_of(content)
    rows = [json.loads(line) for line in members[name].splitlines()]
    change(rows)
    text = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    manifest = json.loads(members["manifest.json"])
    [entry] = [each for each in manifest["members"] if each["name"] == name]
    entry |= {
        "sha256": hashlib.sha256(text).hexdigest(), "size_bytes": len(text), "rows": len(rows),
    }  # fmt: skip
    return zipped(members | {name: text, "manifest.json": json.dumps(manifest).encode()})


def with_manifest(content: bytes, **changes: Any) -> bytes:
    members = members_of(content)
    manifest = json.loads(members["manifest.json"]) | changes
    return zipped(members | {"manifest.json": json.dumps(manifest).encode()})
