"""Move of all contents of files between the folder and the bucket of the settings."""

from __future__ import annotations

import re
from typing import Final

from wms.core.database.locks import advisory_lock
from wms.core.errors import Conflict
from wms.core.storage.copying import Copied, copy_folder, copy_growing
from wms.core.storage.current import scratch_folder
from wms.core.storage.owners import claim, leave, use_again
from wms.core.storage.protocol import ObjectStore
from wms.dags.trials.archives import FOLDER as TRIALS
from wms.jobs.content.unnamed_contents import missing_contents
from wms.jobs.output.streams import STREAM_EXTENTS
from wms.jobs.uploads.selectors import UPLOAD_EXTENTS
from wms.pilots.protocol.logs import LOG_EXTENTS

#: Name of the lock of whoever moves contents.
MOVE: Final = "move of contents"
_OF_CONTENTS = re.compile("[0-9a-f]{2}")


def move_contents(source: ObjectStore, target: ObjectStore, *, removes: bool) -> Copied:
    """Copy what `target` lacks, and with `removes` take from `source` what both have.

    It may be killed and begun again at any time; what it has copied, it passes over. With
    `removes`, nothing is written to `source` any more before the first is taken from there.
    Raises StoreFailed: StoreOfOthers where one of them is another installation's, and Conflict
    while another process moves contents.
    """
    with advisory_lock(MOVE) as is_held:
        if not is_held:
            raise Conflict("Contents are being moved by another process.")
        claim(source)
        claim(target)
        use_again(target)
        if removes:
            leave(source, target.name)
        return _move(source, target, removes=removes)


def _move(source: ObjectStore, target: ObjectStore, *, removes: bool) -> Copied:
    copied, scratch = Copied(), scratch_folder()
    for folder in sorted(source.folders()):
        hashed = _OF_CONTENTS.fullmatch(folder) is not None
        if hashed or folder == TRIALS:
            copy_folder(
                source, target, folder, copied, scratch=scratch, hashed=hashed, removes=removes
            )
    for growing in (STREAM_EXTENTS, LOG_EXTENTS, UPLOAD_EXTENTS):
        copy_growing(source, target, growing, copied, removes=removes)
    return copied


def missing_in(store: ObjectStore) -> list[str]:
    """The first contents that rows name and a store lacks."""
    return missing_contents(store)
