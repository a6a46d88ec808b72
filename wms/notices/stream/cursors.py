"""Place of a follower in the stream of events, which misses nothing that commits late.

Rows are told in the order of their transactions, and only those of transactions older than every
one of this database that is under way: of these nothing can come any more. A long transaction holds
the stream up for as long as it lasts.

A row's transaction has no index, so a place also has, for each kind, a number of an event below
which nothing new can come: its floor. It follows from a mark, the highest numbers at an earlier
time: when all transactions of that time are over, the marked numbers are the floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core import signing

from wms.core.errors import InvalidInput

_SALT = "pilotage.event-stream"
#: A follower that was away for longer begins anew: what it missed is in the lists.
KEPT = timedelta(hours=1)
#: Age of a mark before it counts. The number of an event is drawn an instant before its
#: transaction has one of its own.
_RIPE = timedelta(seconds=10)
#: Numbers below the latest ones that a first place looks at, while transactions are under way and
#: while none is.
_FIRST_LOOK, _FIRST_LOOK_WHEN_QUIET = 100_000, 1_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Transactions as they are now: all before `oldest` are over, none has reached `newest`."""

    oldest: int
    newest: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Highest numbers of events by kind at a time, and a transaction that began after it."""

    newest: int
    ids: Mapping[str, int]
    at: float


@dataclass(frozen=True, slots=True)
class Place:
    """Place behind the event `position`: its transaction, kind and number; told `at` a time."""

    position: tuple[int, str, int]
    floors: Mapping[str, int]
    mark: Mark
    at: float

    @classmethod
    def now(cls, snapshot: Snapshot, ids: Mapping[str, int], now: datetime) -> Place:
        """The place of who begins; `ids` are the highest numbers, read before the snapshot."""
        is_quiet = snapshot.oldest == snapshot.newest
        look = _FIRST_LOOK_WHEN_QUIET if is_quiet else _FIRST_LOOK
        floors = {kind: max(0, last - look) for kind, last in ids.items()}
        at = now.timestamp()
        return cls((snapshot.oldest, "", 0), floors, Mark(snapshot.newest, ids, at), at)

    def is_renewed(self, now: datetime) -> bool:
        """Whether a new mark is worth its reading."""
        return now.timestamp() - self.mark.at >= _RIPE.total_seconds()

    def at_end(self, snapshot: Snapshot, ids: Mapping[str, int] | None, now: datetime) -> Place:
        """The place behind all that is told up to a snapshot; `ids` as for `now`, if read."""
        position = (max(snapshot.oldest, self.position[0]), "", 0)
        moved = replace(self, position=position, at=now.timestamp())
        if ids is None:
            return moved
        mark = Mark(snapshot.newest, ids, now.timestamp())
        is_over = snapshot.oldest >= self.mark.newest
        return replace(moved, floors=self.mark.ids, mark=mark) if is_over else moved

    def knows(self, kinds: Set[str]) -> bool:
        """Whether it tells of all kinds; one of a portal before an update tells of fewer."""
        return kinds <= self.floors.keys() & self.mark.ids.keys()

    def with_all(self, ids: Mapping[str, int]) -> Place:
        """Cursor with a floor of each kind, of those that it lacks as at a beginning.

        Without a floor all events that there ever were would be looked through.
        """
        new = {kind: max(0, last - _FIRST_LOOK) for kind, last in ids.items()}
        mark = replace(self.mark, ids={**new, **self.mark.ids})
        return replace(self, floors={**new, **self.floors}, mark=mark)

    def text(self) -> str:
        """The place as a cursor, which nobody else can make."""
        return signing.dumps(asdict(self), salt=_SALT, compress=True)


def place_of(text: str, now: datetime) -> Place:
    """The place of a cursor. Raises InvalidInput for one that is made up, or too old."""
    try:
        told: dict[str, Any] = signing.loads(text, salt=_SALT)
        transaction, kind, number = told["position"]
        place = Place((transaction, kind, number), told["floors"], Mark(**told["mark"]), told["at"])
    except (signing.BadSignature, KeyError, TypeError, ValueError):
        raise InvalidInput.of("is not a cursor of events", field="after") from None
    if now - datetime.fromtimestamp(place.at, UTC) > KEPT:
        raise InvalidInput.of(
            "is older than an hour: read the objects as they are, and begin without it",
            field="after",
        )
    return place
