"""Files of a store in a folder, for tests that look at the disk, spoil it or lose what is there."""

from __future__ import annotations

from pathlib import Path

from wms.core.storage.current import folder_store
from wms.core.storage.owners import OWNER
from wms.core.storage.protocol import Growing
from wms.jobs.content.blobs import blob_key
from wms.jobs.output.streams import stream_file
from wms.jobs.uploads.places import upload_file
from wms.pilots.protocol.logs import log_file


def stored_files() -> list[str]:
    """Names of the files in the folder, of all but the mark of its owner."""
    files = [path for path in folder_store().base.rglob("*") if path.is_file()]
    return [path.name for path in files if path != folder_store().path_of(OWNER)]


def blob_path(sha256: str) -> Path:
    """File of a content."""
    return folder_store().path_of(blob_key(sha256))


def stream_path(attempt_id: int, kind: str) -> Path:
    """The first file of a stream of an attempt."""
    return _path(stream_file(attempt_id, kind))


def upload_path(upload_id: int) -> Path:
    """File of an upload."""
    return _path(upload_file(upload_id))


def log_path(pilot_id: int) -> Path:
    """File of a pilot's log."""
    return _path(log_file(pilot_id))


def _path(file: Growing) -> Path:
    return folder_store().path_of(file.key)
