"""Series of frontends: what is sampled and counted of each, and which of them a user may read.

They carry the frontend's id, `pilots.running/7`: a name may be given anew, and history is told only
to who may see its frontend. Their number is bounded, and they go with their frontend. What is in
none is the default frontend's, which has no row and the id 0; as long as there is no other, that is
all, which has series of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from django.db.models import Count, Q, Sum

from wms.accounting.frontends import DEFAULT_KEY, read_belongings
from wms.accounting.models import Frontend
from wms.accounting.selectors import visible_frontends
from wms.accounting.walls import walls_of
from wms.core.models import User
from wms.history.models import Series
from wms.jobs.models import Attempt
from wms.pilots.models import Pilot
from wms.pilots.pressure_models import PressureRequest
from wms.pilots.states import PENDING, PilotState
from wms.taskqueues.selectors import waiting_jobs_by_group

#: So many frontends, the oldest, have series, and the default one beside them.
MOST_FRONTENDS = 100
#: What series have for the id of the default frontend.
DEFAULT_ID = 0
#: What is counted of jobs by event, as `throughput.<name>`.
THROUGHPUT_OF_FRONTENDS = ("started", "done", "failed")
_MARK = "/"
_LEVELS = ("pilots.queued", "pilots.running", "jobs.waiting", "jobs.running")


def series_of(quantity: str, frontend_id: int) -> str:
    """Name of the series of a quantity of one frontend."""
    return f"{quantity}{_MARK}{frontend_id}"


def frontends_with_series() -> list[int]:
    """Ids of the frontends of which series are kept, without the default one. One query."""
    return list(Frontend.objects.order_by("pk").values_list("pk", flat=True)[:MOST_FRONTENDS])


def levels_of_frontends(now: datetime) -> dict[str, float]:
    """Pilots and jobs of each frontend, and pilots requested and granted, by series.

    One query without any frontend, else seven. Series of frontends that are no more are removed.
    The default frontend has some where there is another one.
    """
    ids = frontends_with_series()
    _forget_others(ids)
    if not ids:
        return {}
    values = {series_of(name, pk): 0.0 for name in _LEVELS for pk in [DEFAULT_ID, *ids]}
    for name, pk, number in [*_pilots(ids), *_jobs(ids)]:
        values[series_of(name, pk)] += number
    asked = PressureRequest.objects.filter(_of_these(ids), lease_until__gt=now).order_by()
    for pk, wanted, granted in asked.values_list("frontend_id").annotate(
        Sum("wanted"), Sum("granted")
    ):
        values[series_of("pilots.requested", pk or DEFAULT_ID)] = float(wanted)
        values[series_of("pilots.granted", pk or DEFAULT_ID)] = float(granted)
    return values


def _of_these(ids: Sequence[int]) -> Q:
    """Condition for rows of these frontends and of the default one."""
    return Q(frontend__in=ids) | Q(frontend=None)


def _pilots(ids: Sequence[int]) -> Iterator[tuple[str, int, int]]:
    states = [*PENDING, PilotState.RUNNING]
    live = Pilot.objects.filter(_of_these(ids), state__in=states).order_by()
    for pk, state, number in live.values_list("frontend_id", "state").annotate(Count("pk")):
        name = "pilots.queued" if state in PENDING else "pilots.running"
        yield name, pk or DEFAULT_ID, number


def _jobs(ids: Sequence[int]) -> Iterator[tuple[str, int, int]]:
    known = {DEFAULT_ID, *ids}
    frontend_of = read_belongings().frontend_of
    # Open attempts have an index with their groups; jobs would be looked through as a whole.
    open_ones = Attempt.objects.filter(outcome="").order_by()
    running = dict(open_ones.values_list("owner_group").annotate(Count("pk")))
    for name, numbers in (("jobs.running", running), ("jobs.waiting", waiting_jobs_by_group())):
        for group, number in numbers.items():
            pk = frontend_of.get(group, DEFAULT_ID)
            if pk in known:
                yield name, pk, number


def _forget_others(ids: Iterable[int]) -> None:
    kept = {str(pk) for pk in [DEFAULT_ID, *ids]}
    named = Series.objects.filter(name__contains=_MARK).values_list("pk", "name")
    gone = [pk for pk, name in named if name.rpartition(_MARK)[2] not in kept]
    Series.objects.filter(pk__in=gone).delete()


def readable_series(user: User, names: Iterable[str]) -> list[str]:
    """Those of the series that the user may read: of frontends only the visible ones'.

    One query for the walls at most, and one for the frontends.
    """
    whose = {name: name.rpartition(_MARK)[2] for name in names}
    ids = {text for name, text in whose.items() if _MARK in name and _is_id(text)}
    seen: set[str] = set()
    if str(DEFAULT_ID) in ids and sees_default(user):
        seen.add(str(DEFAULT_ID))
    if ids - {str(DEFAULT_ID)}:
        visible = visible_frontends(user).filter(pk__in=ids).values_list("pk", flat=True)
        seen |= {str(pk) for pk in visible}
    return [name for name, text in whose.items() if _MARK not in name or text in seen]


def sees_default(user: User) -> bool:
    """Whether the user may see what is of no frontend."""
    return user.is_active and walls_of(user).lets_in(None)


def frontends_to_choose(user: User) -> list[str]:
    """Names of frontends whose history the user may see, the default one's key first."""
    names = list(visible_frontends(user).values_list("name", flat=True))
    if (names or frontends_with_series()) and sees_default(user):
        names.insert(0, DEFAULT_KEY)
    return names


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
