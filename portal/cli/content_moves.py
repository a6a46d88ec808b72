"""Move of all contents of files between the folder and the bucket of the settings."""

from __future__ import annotations

import re

from wms.core.storage.copying import Copied, copy_folder, copy_growing
from wms.core.storage.current import scratch_folder
from wms.core.storage.protocol import ObjectStore
from wms.dags.trials.archives import FOLDER as TRIALS
from wms.jobs.content.unnamed_contents import missing_contents
from wms.jobs.output.streams import stream_extents
from wms.jobs.uploads.selectors import upload_extents
from wms.pilots.protocol.logs import log_extents

_OF_CONTENTS = re.compile("[0-9a-f]{2}")


def move_contents(source: ObjectStore, target: ObjectStore, *, removes: bool) -> Copied:
    """Copy what `target` lacks, and with `removes` take from `source` what both have.

    It may be killed and begun again at any time; what it has copied, it passes over.
    """
    copied, scratch = Copied(), scratch_folder()
    for folder in sorted(source.folders()):
        hashed = _OF_CONTENTS.fullmatch(folder) is not None
        if hashed or folder == TRIALS:
            copy_folder(
                source, target, folder, copied, scratch=scratch, hashed=hashed, removes=removes
            )
    for extents in (stream_extents(), log_extents(), upload_extents()):
        copy_growing(source, target, extents, copied, removes=removes)
    return copied


def missing_in(store: ObjectStore) -> list[str]:
    """The first contents that rows name and a store lacks."""
    return missing_contents(store)
