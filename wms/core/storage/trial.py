"""Trial of a store: an object is written, read, listed and deleted there."""

from __future__ import annotations

import secrets
from typing import Final

from wms.core.storage.current import scratch_folder
from wms.core.storage.protocol import ObjectStore

_FOLDER: Final = "self-test"


def is_kept(store: ObjectStore) -> bool:
    """Whether what is written there is read and listed again; nothing of it stays.

    Raises OSError or StoreFailed.
    """
    key, content = f"{_FOLDER}/{secrets.token_hex(16)}", secrets.token_bytes(64)
    path = scratch_folder() / f"self-test-{secrets.token_hex(8)}"
    path.write_bytes(content)
    try:
        store.put(key, path)
        return store.read(key, 0, 100) == content and any(
            each.key == key for each in store.listed(_FOLDER)
        )
    finally:
        path.unlink(missing_ok=True)
        store.delete([key])
