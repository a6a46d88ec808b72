"""Standing of a frontend: its entries with request, share and pilots, and its credentials.

Who may see a frontend sees all of this; of others at its queues only sums are told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, QuerySet, Sum

from wms.accounting.frontends import DEFAULT_KEY
from wms.accounting.models import Frontend
from wms.accounting.selectors import find_frontend, visible_frontends
from wms.accounting.walls import walls_of
from wms.core.errors import NotFound
from wms.core.models import User
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.choice import Choices, Chosen
from wms.pilots.models import Pilot
from wms.pilots.pressure.selectors import reasons_of
from wms.pilots.pressure_models import PressureRequest
from wms.pilots.states import ALIVE, PENDING, PilotState
from wms.sites.frontends.entries import Entry, EntryKey, read_entries
from wms.sites.frontends.selectors import entries_of


@dataclass(frozen=True, slots=True)
class EntryStanding:
    """Entry of a frontend now: what is asked for, what there is, and what keeps it back.

    Shares are in per cent of the queue: `share_due` of its places, among the frontends whose jobs
    wait for it, `share_now` of its living pilots. `pilots` counts the frontend's by state.
    """

    entry: Entry
    request: PressureRequest | None
    pilots: Mapping[str, int]
    share_due: float
    share_now: float
    credential: Credential | None
    reasons: Sequence[str]

    @property
    def queued(self) -> int:
        """Pilots that have not called in."""
        return sum(self.pilots.get(state, 0) for state in PENDING)

    @property
    def running(self) -> int:
        """Pilots that run."""
        return self.pilots.get(PilotState.RUNNING, 0)

    @property
    def stalled(self) -> int:
        """Pilots that fell silent."""
        return self.pilots.get(PilotState.STALLED, 0)


@dataclass(frozen=True, slots=True)
class FrontendStanding:
    """Standing of a frontend: None is the default one."""

    frontend: Frontend | None
    entries: Sequence[EntryStanding]
    credentials: Sequence[Credential]

    @property
    def key(self) -> str:
        """Name in addresses."""
        return self.frontend.name if self.frontend else DEFAULT_KEY

    @property
    def totals(self) -> Mapping[str, int]:
        """Sums over all entries."""
        sums: Counter[str] = Counter()
        for each in self.entries:
            sums += Counter(queued=each.queued, running=each.running, stalled=each.stalled)
            if each.request is not None:
                sums += Counter(
                    waiting_jobs=each.request.waiting_jobs,
                    wanted=each.request.wanted,
                    granted=each.request.granted,
                )
        return sums


@dataclass(frozen=True, slots=True)
class FrontendLine:
    """A frontend in a list, with sums over its entries; None is the default one.

    `first_end` is the end of the credential that ends first, of those that are on.
    """

    frontend: Frontend | None
    asked: Mapping[str, int]
    queued: int
    running: int
    first_end: datetime | None

    @property
    def key(self) -> str:
        """Name in addresses."""
        return self.frontend.name if self.frontend else DEFAULT_KEY


def frontend_lines(user: User) -> list[FrontendLine]:
    """Frontends that the user may see, the default one first. Five queries."""
    frontends: list[Frontend | None] = list(visible_frontends(user).select_related("remote"))
    if user.is_active and walls_of(user).lets_in(None):
        frontends.insert(0, None)
    names = ("waiting_jobs", "wanted", "granted")
    sums = PressureRequest.objects.order_by().values_list("frontend_id")
    asked = {
        pk: dict(zip(names, numbers, strict=True))
        for pk, *numbers in sums.annotate(*(Sum(name) for name in names))
    }
    alive = Pilot.objects.filter(state__in=ALIVE, owner=None).order_by()
    counts: dict[int | None, Counter[str]] = defaultdict(Counter)
    for pk, state, n in alive.values_list("frontend_id", "state").annotate(n=Count("pk")):
        counts[pk]["queued" if state in PENDING else state] += n
    on = Credential.objects.filter(is_enabled=True).order_by()
    ends = dict(on.values_list("frontend_id").annotate(Min("expires_at")))
    return [
        FrontendLine(
            each, asked.get(pk, {}), counts[pk]["queued"], counts[pk]["running"], ends.get(pk)
        )
        for each in frontends
        for pk in [each.pk if each else None]
    ]


def find_any_frontend(user: User, key: str) -> Frontend | None:
    """The frontend of this name, or None for the default one's key. Raises NotFound."""
    if key != DEFAULT_KEY:
        return find_frontend(user, key)
    if not (user.is_active and walls_of(user).lets_in(None)):
        raise NotFound("You may not see the default frontend.")
    return None


def standing_of(frontend: Frontend | None, now: datetime) -> FrontendStanding:
    """Standing of a frontend that the user may see. Six queries."""
    entries = entries_of(frontend)
    beside = _beside(entries, now)
    credentials = list(credentials_of(frontend))
    choices, by_id = Choices(now, credentials), {each.pk: each for each in credentials}
    standings = []
    for entry in entries:
        chosen = choices.of(entry.queue, entry.key[1])
        request = beside.requests.get(entry.key)
        standings.append(
            EntryStanding(
                entry,
                request,
                beside.pilots.get(entry.key, {}),
                beside.share_due(entry),
                beside.share_now(entry),
                by_id.get(chosen.credential_id) if chosen.credential_id else None,
                _against(entry, chosen, request),
            )
        )
    return FrontendStanding(frontend, standings, credentials)


def _against(entry: Entry, chosen: Chosen, request: PressureRequest | None) -> list[str]:
    """Reasons that cut down what is asked for, each once."""
    own = []
    if entry.frontend is not None and not entry.frontend.is_enabled:
        own.append("the frontend is switched off")
    if not entry.share:
        own.append("its share here is 0")
    if chosen.refusal:
        own.append(chosen.refusal)
    return list(dict.fromkeys([*own, *reasons_of(request)]))


def credentials_of(frontend: Frontend | None) -> QuerySet[Credential]:
    """Credentials of a frontend in the order of their ends, without what is secret."""
    rows = Credential.objects.filter(frontend=frontend).defer("sealed")
    return rows.select_related("queue__site", "site").order_by("expires_at", "name")


@dataclass(frozen=True, slots=True)
class _Beside:
    """What all frontends have, and want, at the queues of one, by entry."""

    requests: Mapping[EntryKey, PressureRequest]
    pilots: Mapping[EntryKey, Mapping[str, int]]
    sharing: Mapping[int, Sequence[Entry]]
    now: datetime

    def share_due(self, entry: Entry) -> float:
        """Per cent of the queue's places, among this frontend and those that want pilots there."""
        sharing = self.sharing[entry.queue.pk]
        if not any(each.key == entry.key for each in sharing):
            return 0.0
        wanting = [
            each.share for each in sharing if each.key == entry.key or self._wants_pilots(each)
        ]
        return 100 * entry.share / sum(wanting)

    def _wants_pilots(self, entry: Entry) -> bool:
        request = self.requests.get(entry.key)
        return request is not None and request.wanted > 0 and request.lease_until > self.now

    def share_now(self, entry: Entry) -> float:
        """Per cent of the living pilots in the queue."""
        alive = sum(
            sum(by_state.values())
            for key, by_state in self.pilots.items()
            if key[0] == entry.queue.pk
        )
        own = sum(self.pilots.get(entry.key, {}).values())
        return 100 * own / alive if alive else 0.0


def _beside(entries: Sequence[Entry], now: datetime) -> _Beside:
    """What there is at the queues of these entries. Three queries."""
    queues = [entry.queue for entry in entries]
    requests = PressureRequest.objects.filter(queue__in=queues)
    pilots: dict[EntryKey, dict[str, int]] = defaultdict(dict)
    alive = Pilot.objects.filter(queue__in=queues, state__in=ALIVE).order_by()
    counted = alive.values_list("queue_id", "frontend_id", "state").annotate(n=Count("pk"))
    for queue_id, frontend_id, state, n in counted:
        pilots[queue_id, frontend_id][state] = n
    sharing: dict[int, list[Entry]] = defaultdict(list)
    for entry in read_entries(queues):
        sharing[entry.queue.pk].append(entry)
    return _Beside(
        {(each.queue_id, each.frontend_id): each for each in requests}, pilots, sharing, now
    )
