"""Check of the store of contents: whether an object can be written, read and deleted there."""

from __future__ import annotations

from collections.abc import Iterator

from portal.selftest.findings import Code, Finding, error, ok
from wms.core.conf import Conf
from wms.core.errors import PilotageError
from wms.core.storage.protocol import ObjectStore
from wms.core.storage.trial import is_kept

#: The disk or the store refuses, or it has forgotten.
_FAULTS = (OSError, PilotageError)


def usable(store: ObjectStore, conf: Conf) -> Iterator[Finding]:
    """Finding on the store that the settings name."""
    name = (
        f"The folder {conf.blobs_dir}"
        if conf.bucket is None
        else f"The bucket {conf.bucket.bucket} at {conf.bucket.url}"
    )
    try:
        fault = "" if is_kept(store) else "what was written there is not what is read"
    except _FAULTS as refused:
        fault = str(refused)
    if not fault:
        yield ok(Code.CONTENTS, f"{name} keeps contents of files.")
        return
    yield error(
        Code.CONTENTS_NOT_KEPT,
        f"{name} does not keep contents of files: {fault}",
        "Nothing can be submitted, jobs get no inputs, and outputs are not stored.",
        "Look at PILOTAGE_VAR, or at PILOTAGE_BLOBS_S3_*: the key has to be allowed to read, "
        "write, delete and list in the bucket, which has to be there.",
    )
