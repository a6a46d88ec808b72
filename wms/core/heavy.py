"""Slots for heavy requests, which may keep a processor busy for seconds: few per user, few in all.

Without a free slot a request is refused at once (`Busy`): who asks for much at once keeps nobody
else waiting. Each kind of work has slots apart. A slot is an advisory lock, free again when its
process is killed. It belongs to the database's session: between PostgreSQL and the portal may stand
nothing that gives a session to somebody else within a request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from wms.core.conf import conf
from wms.core.database.locks import one_of_advisory_locks
from wms.core.errors import Busy
from wms.core.models import User


class Work(StrEnum):
    """Kind of a request: each has slots of its own.

    A download lasts as long as its reader likes, and to read a large upload for its SHA-256 takes
    minutes, so they must not keep answers waiting.
    """

    ANSWER = "answer"
    DOWNLOAD = "download"
    READING = "reading"


@contextmanager
def heavy_place(user: User, work: Work = Work.ANSWER) -> Iterator[None]:
    """Hold a slot while the block runs. Raises Busy, at once, when none is free."""
    limits, kind = conf(), f"heavy:{work}"
    own = [f"{kind}:{user.pk}:{number}" for number in range(limits.max_heavy_requests_per_user)]
    every = [f"{kind}:{number}" for number in range(limits.max_heavy_requests)]
    with one_of_advisory_locks(own) as is_own:
        if not is_own:
            raise Busy("Other requests of yours are being worked on: ask again in a moment.")
        with one_of_advisory_locks(every) as is_free:
            if not is_free:
                raise Busy("The portal works on as much as it can: ask again in a moment.")
            yield
