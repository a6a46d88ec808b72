"""Entries of frontends at queues: who has pilots where, for whose jobs, with which share.

Services on entries (permitted, audited), and their reading as values: an `Entry` is a queue as one
frontend sees it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import transaction

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from matching.task_queues.start_expressions import StartRule
from wms.accounting.frontends import (
    DEFAULT_FRONTEND,
    Belongings,
    check_start,
    read_belongings,
)
from wms.accounting.models import Frontend
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.saving import check_row, save_audited
from wms.core.errors import Finding, InvalidInput
from wms.core.models import Role
from wms.core.policy import require_role
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue
from wms.sites.selectors import offered_resource

#: Ids of a queue and of a frontend; None for the default one.
EntryKey = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A queue as one frontend sees it: its share there, its pilots and waiting pilots at most.

    A share of 0: it is sent nothing more. `start` are the expressions of its frontend and its own,
    all of which jobs have to meet.
    """

    queue: Queue
    frontend: Frontend | None
    share: float
    max_pilots: int
    max_queued: int
    start: tuple[str, ...] = ()

    @property
    def key(self) -> EntryKey:
        """Ids of the queue and of the frontend."""
        return self.queue.pk, self.frontend.pk if self.frontend else None

    def __str__(self) -> str:
        return f"{self.queue} for {self.frontend}" if self.frontend else str(self.queue)


def is_private(queue: Queue) -> bool:
    """Whether the pilots of a queue have owners: then no frontend has any there."""
    return queue.is_private or queue.owner_id is not None


def read_entries(queues: Sequence[Queue]) -> list[Entry]:
    """Entries of all frontends that are switched on at these queues, by queue. One query."""
    rows: dict[int, list[FrontendEntry]] = defaultdict(list)
    for row in FrontendEntry.objects.select_related("frontend").order_by("frontend__name"):
        rows[row.queue_id].append(row)
    return [entry for queue in queues for entry in _entries_at(queue, rows.get(queue.pk, ()))]


def _entries_at(queue: Queue, rows: Iterable[FrontendEntry]) -> list[Entry]:
    whole = Entry(queue, None, 1.0, queue.max_pilots, queue.max_queued_pilots)
    if is_private(queue):
        return [whole]
    by_frontend = {row.frontend_id: entry_of(queue, row) for row in rows}
    entries = [by_frontend.pop(None, whole), *by_frontend.values()]
    return [each for each in entries if each.share and _is_on(each.frontend)]


def _is_on(frontend: Frontend | None) -> bool:
    return frontend is None or frontend.is_enabled


def entry_of(queue: Queue, row: FrontendEntry) -> Entry:
    """An entry as its row and the limits of its queue make it, be it on or off."""
    most = queue.max_pilots if row.max_pilots is None else row.max_pilots
    most_queued = row.max_queued_pilots
    return Entry(
        queue,
        row.frontend,
        row.share,
        min(most, queue.max_pilots),
        queue.max_queued_pilots
        if most_queued is None
        else min(most_queued, queue.max_queued_pilots),
        start_expressions(row.frontend, row),
    )


def start_expressions(frontend: Frontend | None, row: FrontendEntry | None) -> tuple[str, ...]:
    """Start expressions of a frontend, then of its entry, as far as there are any."""
    texts = (each.start_expression for each in (frontend, row) if each is not None)
    return tuple([text for text in texts if text.strip()])


def confined(
    resource: Resource, frontend_id: int | None, groups: tuple[str, ...]
) -> Resource | None:
    """The resource for the jobs of one frontend; None where no group belongs to it.

    `groups` are as `Belongings.groups` tells them. A private pilot has an owner, and is left as it
    is.
    """
    if resource.pilot_type == "private":
        return resource
    if frontend_id is None:
        return replace(resource, foreign_groups=groups)
    return replace(resource, owner_groups=groups) if groups else None


def entry_offer(entry: Entry, belongings: Belongings) -> Resource | None:
    """Resource that a fresh pilot of an entry offers; None where no group is the frontend's.

    Reads the queue's site, owner and group: select them with it.
    """
    frontend_id = entry.frontend.pk if entry.frontend else None
    offer = confined(offered_resource(entry.queue), frontend_id, belongings.groups(frontend_id))
    return offer and replace(offer, start=entry.start)


def entry_offers(queues: Sequence[Queue]) -> list[tuple[Entry, Resource]]:
    """Entries at these queues with what they offer; without those of no group. Two queries."""
    belongings = read_belongings()
    offers = [(entry, entry_offer(entry, belongings)) for entry in read_entries(queues)]
    return [(entry, offer) for entry, offer in offers if offer is not None]


def start_rule(queue: Queue, texts: Sequence[str]) -> StartRule:
    """Rule by which pilots in a queue are sent for jobs, and take them."""
    return StartRule(texts, offered_resource(queue))


class EntriesByGroup:
    """Whether pilots are sent to a queue for the jobs of a group. Two queries, then none."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        self._queues = queues
        self._belongings = read_belongings()
        self._entries: Mapping[EntryKey, Entry] = {
            entry.key: entry for entry in read_entries(queues)
        }
        self._names = dict(Frontend.objects.values_list("pk", "name")) if self._is_used else {}

    @property
    def _is_used(self) -> bool:
        return bool(self._belongings.frontend_of)

    def sites(self, needs: Needs) -> set[str]:
        """Names of the sites of queues in which the frontend of these jobs has pilots for them."""
        return {queue.site.name for queue in self._queues if not self.refusal(queue, needs)}

    def frontend_of(self, needs: Needs) -> int | None:
        """Id of the frontend that jobs with these needs belong to."""
        return self._belongings.frontend_of.get(needs.owner_group)

    def refusal(self, queue: Queue, needs: Needs) -> str:
        """Why the frontend of these jobs has no pilots for them in a queue; empty where it has."""
        if is_private(queue):
            return ""
        frontend_id = self.frontend_of(needs)
        entry = self._entries.get((queue.pk, frontend_id))
        if entry is not None:
            part = start_rule(queue, entry.start).refusing_part(needs)
            return f"the start expression of its frontend refuses it: {part.text}" if part else ""
        whose = DEFAULT_FRONTEND
        if frontend_id is not None:
            whose = f"the frontend {self._names.get(frontend_id, frontend_id)}"
        return f"{whose} has no pilots there"


def check_entry(entry: FrontendEntry) -> None:
    """Raise InvalidInput with the faults of an entry."""
    check_row(entry)
    check_start(entry.start_expression)
    if is_private(entry.queue):
        message = "its pilots are private, and of no frontend"
        raise InvalidInput.of(message, field="queue")
    findings = [
        *_contradictions(entry),
        *(each for check in _entry_checks for each in check(entry)),
    ]
    if findings:
        raise InvalidInput(findings)


def _contradictions(entry: FrontendEntry) -> Iterator[Finding]:
    """Limits that contradict each other, the share, or those of the queue."""
    queue = entry.queue
    of_queue = {"max_pilots": queue.max_pilots, "max_queued_pilots": queue.max_queued_pilots}
    for field, most in of_queue.items():
        value = getattr(entry, field)
        if value is None:
            continue
        if not entry.share:
            yield Finding("limits nothing: its share of 0 gives it no pilots", field=field)
        elif value == 0:
            yield Finding("0 contradicts its share: set the share to 0 instead", field=field)
        elif value > most:
            yield Finding(f"is more than the queue has ({most})", field=field)
    in_all, waiting = entry.max_pilots, entry.max_queued_pilots
    if in_all is not None and waiting is not None and waiting > in_all:
        message = f"more may wait than there may be in all ({in_all})"
        yield Finding(message, field="max_queued_pilots")


_entry_checks: list[Callable[[FrontendEntry], Iterable[Finding]]] = []


def register_entry_check(check: Callable[[FrontendEntry], Iterable[Finding]]) -> None:
    """Have another app, above this one, check entries before they are stored."""
    if check not in _entry_checks:
        _entry_checks.append(check)


@transaction.atomic
def save_entry(entry: FrontendEntry, *, actor: Actor, reason: str = "") -> None:
    """Check and store an entry: it counts from the director's next cycle on, and ends no pilot.

    Raises NotPermitted or InvalidInput.
    """
    require_role(actor, Role.OPERATOR, "configure entries of frontends")
    check_entry(entry)
    save_audited(entry, target=target_of(entry), actor=actor, reason=reason)


@transaction.atomic
def delete_entry(entry: FrontendEntry, *, actor: Actor, reason: str = "") -> None:
    """Delete an entry: what waits there is taken back, what runs goes on. Raises NotPermitted."""
    require_role(actor, Role.OPERATOR, "configure entries of frontends")
    facts = {
        name: [getattr(entry, name), None] for name in ("share", "max_pilots", "max_queued_pilots")
    }
    record_action(
        "delete frontend entry", target=target_of(entry), actor=actor, reason=reason, facts=facts
    )
    entry.delete()


def target_of(entry: FrontendEntry) -> str:
    """Name of an entry in the audit trail."""
    return f"entry of {entry}"[:160]
