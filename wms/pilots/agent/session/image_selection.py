"""Trial of a container on the pilot's node, which decides whether the pilot takes jobs with images.

It gives the pilot's `Images`, and tells the server the result.
"""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Protocol

from ..fence.base import Fence, FenceUnusable
from ..jobs.images import Images
from .fence_selection import try_containers, working_containers
from .queue_settings import QueueSettings

#: Name of the trial among the results of the node's checks.
TRIAL = "containers"

log = logging.getLogger("pilot")


class _Tell(Protocol):
    """Tells the server the result of a trial."""

    def __call__(self, name: str, *, failure: str) -> None: ...


def images_of(settings: QueueSettings, fence: Fence, work_dir: Path, tell: _Tell) -> Images:
    """Images of the pilot's jobs, if its queue has jobs with some and its node starts containers.

    Where it does not, the pilot takes jobs without images. Raises the exceptions of `tell`.
    """
    if not settings.has_containers:
        return Images(work_dir)
    try:
        containers = working_containers(work_dir, fence)
    except FenceUnusable as error:
        log.warning("no job with an image is taken: %s", error)
        tell(TRIAL, failure=str(error))
        return Images(work_dir)
    tell(TRIAL, failure="")
    return Images(work_dir, containers, partial(try_containers, containers, work_dir))
