"""Layout of an archive file: format and version, names of members, and bounds of what is read.

A name of a member is made of a kind and a number or hash, never of a user's text.
"""

from __future__ import annotations

import re
from typing import Final

FORMAT: Final = "pilotage-dag-archive"
#: Changes when a reader of the version before would misread a file.
VERSION: Final = 1
MANIFEST: Final = "manifest.json"

#: Rows of a chunk, and bytes after which it ends earlier.
CHUNK_ROWS: Final = 1000
CHUNK_BYTES: Final = 8 * 1024**2
#: A file of the workspace that no job made is kept up to this size; of all so many bytes and files.
CONTENT_BYTES: Final = 1024**2
CONTENTS_BYTES: Final = 64 * 1024**2
MOST_CONTENTS: Final = 10_000
#: First failures that the manifest tells.
FAILURES_TOLD: Final = 20

#: Bounds of what is imported: of the file, its table of contents, and its unpacked members.
MOST_FILE_BYTES: Final = 16 * 1024**3
MOST_MEMBERS: Final = 100_000
MOST_DIRECTORY_BYTES: Final = 16 * 1024**2
MOST_MANIFEST_BYTES: Final = 32 * 1024**2
MOST_CHUNK_BYTES: Final = 64 * 1024**2
MOST_LOG_BYTES: Final = 64 * 1024**3
#: A member that is larger than the second, unpacked, has at most so many times its packed size.
MOST_RATIO: Final = 400
RATIO_FROM_BYTES: Final = 1024**2

CHUNK_NAME: Final = re.compile(r"([a-z_]+)/([0-9]{6})\.jsonl")
LOG_NAME: Final = re.compile(r"logs/[1-9][0-9]{0,18}\.(?:nodes|jobstate)\.log")
CONTENT_NAME: Final = re.compile(r"contents/([0-9a-f]{64})")


def chunk_name(kind: str, number: int) -> str:
    """Name of a chunk of rows, counted from 1."""
    return f"{kind}/{number:06d}.jsonl"


def content_name(sha256: str) -> str:
    """Name of a kept content."""
    return f"contents/{sha256}"


def most_bytes_of(name: str) -> int | None:
    """The most bytes that a member of this name has unpacked; None for a name that none has."""
    if name == MANIFEST:
        return MOST_MANIFEST_BYTES
    if CHUNK_NAME.fullmatch(name):
        return MOST_CHUNK_BYTES
    if LOG_NAME.fullmatch(name):
        return MOST_LOG_BYTES
    return CONTENT_BYTES if CONTENT_NAME.fullmatch(name) else None
