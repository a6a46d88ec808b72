"""Check of the store of contents: whether it is this installation's, and keeps what is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from portal.selftest.findings import Code, Finding, error, ok
from wms.core.conf import Conf
from wms.core.errors import PilotageError
from wms.core.storage.owners import StoreLeft, StoreOfOthers
from wms.core.storage.protocol import ObjectStore
from wms.core.storage.trial import is_kept

#: The disk or the store refuses, or it has forgotten.
_FAULTS = (OSError, PilotageError)


def usable(store: Callable[[], ObjectStore], conf: Conf) -> Iterator[Finding]:
    """Finding on the store that the settings name, which may refuse to be written to."""
    name = (
        f"The folder {conf.blobs_dir}"
        if conf.bucket is None
        else f"The bucket {conf.bucket.bucket} at {conf.bucket.url}"
    )
    try:
        fault = "" if is_kept(store()) else "what was written there is not what is read"
    except StoreOfOthers as refused:
        yield _of_others(name, refused)
        return
    except StoreLeft as refused:
        yield _left(name, refused)
        return
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


def _of_others(name: str, refused: StoreOfOthers) -> Finding:
    return error(
        Code.CONTENTS_OF_OTHERS,
        f"{name} belongs to the installation at {refused.owner.address}, or this database was "
        "restored or moved to another server.",
        "Nothing is written there, because each would remove the other's contents: nothing can be "
        "submitted, and outputs are not stored.",
        "Give this installation a folder, bucket or PILOTAGE_BLOBS_S3_PREFIX of its own. If the "
        "other one is no more, run `manage.py take_store --take-over`.",
    )


def _left(name: str, refused: StoreLeft) -> Finding:
    return error(
        Code.CONTENTS_LEFT,
        f"The contents of {name} were moved to {refused.target}, and this host uses it still.",
        "Nothing is written there, and what was moved is not found.",
        "Put the settings of the store in use, PILOTAGE_BLOBS_S3_*, into the environment of this "
        "host, and start its services anew.",
    )
