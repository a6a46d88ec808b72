"""The store that the settings name, and the folder of this host for what is on its way there."""

from __future__ import annotations

from pathlib import Path

from wms.core.conf import BucketConf, conf
from wms.core.storage.folder import FolderStore
from wms.core.storage.owners import forget_marks, require_own
from wms.core.storage.protocol import ObjectStore, ReadableStore
from wms.core.storage.s3_requests import Bucket
from wms.core.storage.s3_store import S3Store


def current_store() -> ReadableStore:
    """The store in force now, to read from."""
    return named_store()


def writable_store() -> ObjectStore:
    """The store in force now, if this installation may write there. Raises StoreFailed.

    Its marks are read now and then; who writes to a growing file asks while its row is locked.
    """
    now, store = conf(), named_store()
    require_own(store, now.bucket or now.blobs_dir)
    return store


def named_store() -> ObjectStore:
    """The store in force now, whoever has it: for those who look at its marks."""
    now = conf()
    return folder_store() if now.bucket is None else bucket_store(now.bucket, now.blobs_dir)


def folder_store() -> FolderStore:
    """The folder of the settings, whether it is the store or not."""
    return FolderStore(conf().blobs_dir)


#: One for a process and its settings, since it keeps connections.
_stores: dict[tuple[BucketConf, Path], S3Store] = {}


def bucket_store(bucket: BucketConf, scratch: Path) -> S3Store:
    """The store of a bucket."""
    key = (bucket, scratch)
    return _stores.get(key) or _stores.setdefault(key, S3Store(Bucket(bucket), scratch))


def close_stores() -> None:
    """End the connections that are kept to stores."""
    forget_marks()
    while _stores:
        _stores.popitem()[1].close()


def scratch_folder() -> Path:
    """Folder of this host for files that the store takes over when they are whole."""
    folder = conf().blobs_dir / "incoming"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
