"""Services that write remarks: note, acknowledge, assign, hand back, and entries of the shift log.

Each appends a remark; nothing that was written is changed or removed, and a correction is another
remark. Who looks after a subject is changed with the remark that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.audit import record_actions
from wms.core.errors import InvalidInput, NotFound, NotPermitted, ReasonRequired
from wms.core.inbox import announce
from wms.core.models import InboxEntry, Role, User
from wms.core.stale import refuse_stale
from wms.core.transitions import Applied
from wms.remarks.models import MAX_TEXT, MAX_TICKET, Handling, Remark
from wms.remarks.policy import may_write_log
from wms.remarks.selectors import care_now
from wms.remarks.states import ASSIGNED_TOPIC, RemarkEvent, SubjectKind
from wms.remarks.subjects import SUBJECTS, SubjectType, subject_type

#: Longest time for which something can be acknowledged; without a time it holds until it ends.
MAX_ACKNOWLEDGED_S = 31 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Written(Applied):
    """Result of writing about subjects: ids of those that got a remark, of others, of remarks."""

    remark_ids: list[int] = field(default_factory=list)


def note(
    kind: str, ids: Collection[int], *, actor: Actor, reason: str, ticket: str = ""
) -> Written:
    """Write a note about subjects, and the address of a ticket. The reason is its text."""
    remark = _Remark(RemarkEvent.NOTE, _text(reason, RemarkEvent.NOTE), _ticket(ticket))
    return _write(subject_type(kind), ids, remark, actor)


def acknowledge(
    kind: str,
    ids: Collection[int],
    *,
    actor: Actor,
    reason: str,
    for_s: int | None = None,
    ticket: str = "",
    seen: str = "",
) -> Written:
    """Say that subjects are known and looked after, so long or until their state changes."""
    if for_s is not None and not 0 < for_s <= MAX_ACKNOWLEDGED_S:
        most = MAX_ACKNOWLEDGED_S // 60
        raise InvalidInput.of(f"must be from 1 to {most} minutes", field="for_s")
    text = _text(reason, RemarkEvent.ACKNOWLEDGE)
    until = None if for_s is None else timezone.now() + timedelta(seconds=for_s)
    remark = _Remark(RemarkEvent.ACKNOWLEDGE, text, _ticket(ticket), until=until)
    return _write(subject_type(kind), ids, remark, actor, seen=seen)


def assign(
    kind: str,
    ids: Collection[int],
    *,
    actor: Actor,
    reason: str = "",
    person: str = "",
    ticket: str = "",
    seen: str = "",
) -> Written:
    """Say who looks after subjects: a person who may see them; by default the actor.

    Those that are assigned to this person already are skipped. Another person is told of it.
    """
    of_kind = subject_type(kind)
    found = _person(person, of_kind, ids, actor)
    remark = _Remark(RemarkEvent.ASSIGN, _text(reason), _ticket(ticket), person=found)
    return _write(of_kind, ids, remark, actor, seen=seen)


def hand_back(
    kind: str,
    ids: Collection[int],
    *,
    actor: Actor,
    reason: str = "",
    ticket: str = "",
    seen: str = "",
) -> Written:
    """End the acknowledgement and the assignment of subjects. Those with neither are skipped."""
    remark = _Remark(RemarkEvent.HAND_BACK, _text(reason), _ticket(ticket))
    return _write(subject_type(kind), ids, remark, actor, seen=seen)


@transaction.atomic
def write_log(*, actor: Actor, text: str, ticket: str = "") -> Remark:
    """Write an entry of the shift log that is about no subject."""
    if actor.user is None or not may_write_log(actor.user):
        raise NotPermitted(
            f"{actor.name} may not write into the shift log: this needs the role "
            f"{Role.SHIFTER.label}."
        )
    remark = Remark.objects.create(
        event=RemarkEvent.NOTE,
        subject_kind=SubjectKind.LOG,
        author=actor.user,
        text=_text(text, RemarkEvent.NOTE),
        ticket=_ticket(ticket),
    )
    facts = {"ticket": remark.ticket} if remark.ticket else {}
    record_actions(
        "write into shift log", targets=["shift log"], actor=actor, reason=remark.text, facts=facts
    )
    remark.refresh_from_db()
    return remark


@dataclass(frozen=True, slots=True)
class _Remark:
    """Checked content of a remark, before it is known about which subjects it will be."""

    event: RemarkEvent
    text: str
    ticket: str
    until: datetime | None = None
    person: User | None = None

    @property
    def facts(self) -> dict[str, str]:
        """Facts of the audit entry."""
        told = {
            "ticket": self.ticket,
            "until": self.until.isoformat() if self.until else "",
            "person": self.person.get_username() if self.person else "",
        }
        return {name: value for name, value in told.items() if value}


@transaction.atomic
def _write(
    of_kind: SubjectType, ids: Collection[int], content: _Remark, actor: Actor, *, seen: str = ""
) -> Written:
    """Append a remark about each subject that the actor may see, and change who looks after it.

    Raises NotFound where none is visible, NotPermitted where the actor may not write about all of
    them, and Conflict where one is looked after otherwise than was `seen`.
    """
    user = actor.user
    if user is None:
        raise NotPermitted("Remarks are written by people.")
    subjects = {each.pk: each for each in of_kind.visible(user).filter(pk__in=ids).order_by("pk")}
    if not subjects:
        raise NotFound(f"There is no such {of_kind.target}, or you may not see it.")
    if not of_kind.writes(user, list(subjects.values())):
        raise NotPermitted(
            f"{actor.name} may not write about every one of them: who steers a {of_kind.target} "
            f"may, and this needs the role {Role.SHIFTER.label} otherwise."
        )
    if content.event != RemarkEvent.NOTE:
        rows = _locked(of_kind, list(subjects))
        _refuse_stale(of_kind, subjects, rows, seen)
        changed = [row for row in rows if _CHANGES[content.event](row, content, user)]
        Handling.objects.bulk_update(changed, _CARE_COLUMNS)
        subjects = {row.subject_id: subjects[row.subject_id] for row in changed}
    remarks = Remark.objects.bulk_create(
        Remark(
            event=content.event, subject_kind=of_kind.kind, subject_id=pk,
            subject_name=of_kind.name_of(subject), author=user, text=content.text,
            ticket=content.ticket, until=content.until, person=content.person,
        )
        for pk, subject in subjects.items()
    )  # fmt: skip
    if content.person not in {None, user}:
        announce(map(_news_of, remarks))
    record_actions(
        _action(content.event, of_kind),
        targets=[of_kind.target_of(subject) for subject in subjects.values()],
        actor=actor,
        reason=content.text,
        facts=content.facts,
    )
    skipped = sorted(set(ids) - set(subjects))
    return Written(list(subjects), skipped, [remark.pk for remark in remarks])


def _news_of(remark: Remark) -> InboxEntry:
    kind = InboxEntry.Kind.REMARK
    return InboxEntry(topic=ASSIGNED_TOPIC, key=remark.pk, kind=kind, subject_id=remark.pk)


def _action(event: str, of_kind: SubjectType) -> str:
    return f"{event.replace('_', ' ')} {of_kind.target}"


#: Actions of the audit trail that tell of remarks about subjects.
AUDITED = frozenset(
    _action(event, each) for event in RemarkEvent.values for each in SUBJECTS.values()
)

_CARE_COLUMNS = (
    "acknowledged_by", "acknowledged_at", "acknowledged_until", "assigned_to", "assigned_at",
)  # fmt: skip


def _locked(of_kind: SubjectType, ids: Sequence[int]) -> list[Handling]:
    """Rows of subjects, made if missing, locked in the order of the subjects."""
    new = [Handling(subject_kind=of_kind.kind, subject_id=pk) for pk in ids]
    Handling.objects.bulk_create(new, ignore_conflicts=True)
    rows = Handling.objects.filter(subject_kind=of_kind.kind, subject_id__in=ids)
    people = rows.select_related("acknowledged_by", "assigned_to")
    return list(people.order_by("subject_id").select_for_update(of=("self",)))


def _refuse_stale(
    of_kind: SubjectType, subjects: Mapping[int, Any], rows: Sequence[Handling], seen: str
) -> None:
    now = timezone.now()
    for row in rows:
        subject = subjects[row.subject_id]
        care = care_now(row, since=of_kind.since_of(subject), now=now)
        refuse_stale(seen, str(care), what=of_kind.target_of(subject))


def _acknowledge(row: Handling, content: _Remark, user: User) -> bool:
    row.acknowledged_by, row.acknowledged_at = user, Now()
    row.acknowledged_until = content.until
    return True


def _assign(row: Handling, content: _Remark, user: User) -> bool:
    if row.assigned_to == content.person:
        return False
    row.assigned_to, row.assigned_at = content.person, Now()
    return True


def _hand_back(row: Handling, content: _Remark, user: User) -> bool:
    if row.acknowledged_by is None and row.assigned_to is None:
        return False
    row.acknowledged_by = row.acknowledged_at = row.acknowledged_until = None
    row.assigned_to = row.assigned_at = None
    return True


#: Changes of a row by a remark; each returns whether there was any.
_CHANGES: Mapping[str, Callable[[Handling, _Remark, User], bool]] = {
    RemarkEvent.ACKNOWLEDGE: _acknowledge,
    RemarkEvent.ASSIGN: _assign,
    RemarkEvent.HAND_BACK: _hand_back,
}


def _text(text: str, needed_by: RemarkEvent | None = None) -> str:
    found = text.strip()
    if not found and needed_by is not None:
        raise ReasonRequired(needed_by)
    if len(found) > MAX_TEXT:
        raise InvalidInput.of(f"has at most {MAX_TEXT} characters", field="text")
    return found


def _ticket(address: str) -> str:
    """Checked address of a ticket: http or https, with a host and without a password."""
    found = address.strip()
    if not found:
        return ""
    if len(found) > MAX_TICKET:
        raise InvalidInput.of(f"has at most {MAX_TICKET} characters", field="ticket")
    try:
        parts = urlsplit(found)
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname)
        has_user = parts.username is not None or parts.password is not None
    except ValueError:
        is_web, has_user = False, False
    is_plain = found.isprintable() and not any(sign in found for sign in " \"'<>\\`")
    if not is_web or has_user or not is_plain:
        raise InvalidInput.of(
            "must be an address such as https://tickets.example.org/123, without a user name",
            field="ticket",
        )
    return found


def _person(name: str, of_kind: SubjectType, ids: Collection[int], actor: Actor) -> User:
    """The person of this name, if there is one who may see all subjects; by default the actor."""
    if actor.user is None:
        raise NotPermitted("Remarks are written by people.")
    wanted = name.strip()
    if wanted in {"", actor.user.get_username()}:
        return actor.user
    found = User.objects.filter(username=wanted, is_active=True).first()
    if found is None or of_kind.visible(found).filter(pk__in=ids).count() < len(set(ids)):
        # One answer to both, so that nobody learns who is behind a wall.
        message = f"there is no user {wanted[:100]} who may see it"
        raise InvalidInput.of(message, field="person")
    return found
