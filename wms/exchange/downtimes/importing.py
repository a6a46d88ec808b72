"""Import of downtimes from a calendar or GOCDB: previewed, then stored as previewed or not at all.

An imported downtime remembers its source and the name that it has there, so that a second import
changes it instead of entering another. The preview does what the import does, in a transaction that
is rolled back; its token names the plan. Nothing is fetched from anywhere: documents are sent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from django.db import IntegrityError, transaction
from django.db.models import Q

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, InvalidInput, PilotageError, ReasonRequired, TooLarge
from wms.exchange.downtimes.calendars import read_calendar
from wms.exchange.downtimes.entries import MAX_BYTES, MAX_ENTRIES, Entry, ImportOptions
from wms.exchange.downtimes.gocdb import read_gocdb
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.services import (
    DowntimeTerms,
    cancel_downtimes,
    save_downtime,
    terms_of,
)
from wms.sites.models import Site
from wms.sites.policy import require_steering, steerable_sites


class DowntimeOutcome(StrEnum):
    """Outcomes of an entry."""

    ADDED = "added"
    CHANGED = "changed"
    CANCELLED = "cancelled"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class DowntimeStep:
    """Outcome of one entry at one site; `note` says why it is skipped, or what it was before."""

    uid: str
    place: str
    site: str
    start: datetime
    end: datetime
    reason: str
    outcome: DowntimeOutcome
    note: str = ""


@dataclass(frozen=True, slots=True)
class DowntimePlan:
    """Plan of an import, entry by entry. `token` identifies exactly this plan."""

    steps: tuple[DowntimeStep, ...]
    token: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """Number of entries with each outcome."""
        outcomes = [step.outcome for step in self.steps]
        return {outcome.value: outcomes.count(outcome) for outcome in DowntimeOutcome}

    @property
    def changes_something(self) -> bool:
        """True when it would store anything."""
        idle = {DowntimeOutcome.UNCHANGED, DowntimeOutcome.SKIPPED}
        return any(step.outcome not in idle for step in self.steps)


class DowntimePlanChanged(Conflict):
    """The plan has changed since it was previewed; nothing was stored. `plan` is that of now."""

    def __init__(self, plan: DowntimePlan) -> None:
        super().__init__(
            "Nothing was stored: something was changed since the preview. Look at what would be "
            "done now."
        )
        self.plan = plan


class _PreviewRollback(Exception):
    """Ends the transaction of a preview."""


def require_importing(actor: Actor) -> None:
    """Raise NotPermitted unless the actor may enter downtimes at some site."""
    if actor.user is None or not steerable_sites(actor.user).exists():
        require_steering(actor, "import downtimes")


def preview_downtimes(
    content: bytes, options: ImportOptions, *, actor: Actor, now: datetime
) -> DowntimePlan:
    """Plan of an import; nothing is stored.

    Raises NotPermitted, TooLarge, and InvalidInput for a document or options that are wrong.
    """
    entries = _read(content, options, actor, now)
    plan = DowntimePlan(())
    try:
        with transaction.atomic():
            plan = _carry_out(entries, options, actor=actor, reason="a preview", now=now)
            raise _PreviewRollback
    except _PreviewRollback:
        return plan


@transaction.atomic
def import_downtimes(
    content: bytes,
    options: ImportOptions,
    *,
    token: str,
    actor: Actor,
    reason: str,
    now: datetime,
) -> DowntimePlan:
    """Store what the preview with this token showed: all of it, or nothing.

    Raises NotPermitted, ReasonRequired, TooLarge, InvalidInput, and DowntimePlanChanged when it
    would do anything else now.
    """
    if not reason.strip():
        raise ReasonRequired("import")
    entries = _read(content, options, actor, now)
    plan = _carry_out(entries, options, actor=actor, reason=reason.strip(), now=now)
    if plan.token != token:
        # Leaving by an error takes everything back.
        raise DowntimePlanChanged(plan)
    if plan.changes_something:
        facts = {
            **plan.counts, "source": options.source, "sha256": hashlib.sha256(content).hexdigest()
        }  # fmt: skip
        why = reason.strip()
        record_action("import downtimes", target="sites", actor=actor, reason=why, facts=facts)
    return plan


def _read(content: bytes, options: ImportOptions, actor: Actor, now: datetime) -> Sequence[Entry]:
    require_importing(actor)
    options.check()
    if len(content) > MAX_BYTES:
        raise TooLarge(f"A document of downtimes has {MAX_BYTES} bytes at most.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput.of("is not UTF-8", file="document", line=line) from error
    if "\x00" in text:
        raise InvalidInput.of("has a character of code 0", file="document")
    entries = _entries(text, options, now)
    if sum(len(entry.places) or 1 for entry in entries) > MAX_ENTRIES:
        message = f"has more than {MAX_ENTRIES} downtimes, each place of them counted"
        raise InvalidInput.of(message, file="document")
    return entries


def _entries(text: str, options: ImportOptions, now: datetime) -> Sequence[Entry]:
    begin = text.lstrip()
    if begin[:15].upper() == "BEGIN:VCALENDAR":
        return read_calendar(text, zone=options.zone, now=now)
    if begin.startswith("<"):
        return read_gocdb(text, now=now, is_complete=options.is_complete)
    message = "is neither a calendar (BEGIN:VCALENDAR) nor the XML of GOCDB"
    raise InvalidInput.of(message, file="document")


def _carry_out(
    entries: Sequence[Entry], options: ImportOptions, *, actor: Actor, reason: str, now: datetime
) -> DowntimePlan:
    known = {
        (row.uid, row.recurrence, row.site_id): row
        for row in Downtime.objects.select_for_update(of=("self",))
        .select_related("site")
        .filter(Q(end__gt=now) | Q(uid__in={entry.uid for entry in entries}), source=options.source)
        .order_by("pk")
    }
    sites = {site.name.casefold(): site for site in Site.objects.all()}
    ours = {theirs.casefold(): name for theirs, name in options.sites.items()}
    importer = _Importer(options, actor, reason, now)
    steps, seen = [], set()
    # An outage of one place of a site counts before another place of it that stays up.
    for entry in sorted(entries, key=lambda each: bool(each.skipped)):
        for place, site in _targets(entry, sites, ours, options.default_site):
            key = (entry.uid, entry.recurrence, site.pk if site else 0)
            # Two places may be of one site; each without a site is told.
            if site is not None and key in seen:
                continue
            seen.add(key)
            steps.append(importer.step(entry, place, site, known.get(key)))
    if options.is_complete:
        gone = [row for key, row in known.items() if key not in seen and importer.is_living(row)]
        steps += [importer.withdraw(row) for row in gone]
    return DowntimePlan(tuple(steps), _token(steps, options))


def _targets(
    entry: Entry, sites: dict[str, Site], ours: dict[str, str], default: str
) -> Iterator[tuple[str, Site | None]]:
    """Places of an entry with their sites; an entry without a place is for the default site."""
    for place in entry.places or ("",):
        name = ours.get(place.casefold(), place) if place else default
        site = sites.get(name.casefold()) if name else None
        if site is None and default and place and place.casefold() not in ours:
            site = sites.get(default.casefold())
        yield place, site


def _token(steps: Sequence[DowntimeStep], options: ImportOptions) -> str:
    described = [asdict(options), [asdict(step) for step in steps]]
    return hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Importer:
    """Stores entries one by one; what is refused of one is its note."""

    options: ImportOptions
    actor: Actor
    reason: str
    now: datetime

    def step(
        self, entry: Entry, place: str, site: Site | None, row: Downtime | None
    ) -> DowntimeStep:
        """Store one entry at one site, or tell why not."""
        outcome, note = DowntimeOutcome.SKIPPED, entry.skipped
        if site is None:
            note = note or self._no_site(place)
        elif not note or (row is not None and self.is_living(row)):
            try:
                with transaction.atomic():
                    outcome, note = self._stored(entry, site, row)
            except IntegrityError:
                note = "somebody else has imported the same at this moment"
            except PilotageError as error:
                note = str(error)
        return DowntimeStep(
            entry.uid, place, site.name if site else "", entry.start, entry.end, entry.reason,
            outcome, note,
        )  # fmt: skip

    def withdraw(self, row: Downtime) -> DowntimeStep:
        """Cancel a downtime that its source has no more."""
        outcome, note = DowntimeOutcome.SKIPPED, self._changed_by_hand(row)
        if not note:
            try:
                with transaction.atomic():
                    self._cancel(row, "its source has it no more")
                outcome, note = DowntimeOutcome.CANCELLED, "its source has it no more"
            except PilotageError as error:
                note = str(error)
        return DowntimeStep(
            row.uid, "", row.site.name, row.start, row.end, row.reason, outcome, note
        )

    def is_living(self, row: Downtime) -> bool:
        """True for a downtime that can still be cancelled."""
        return row.cancelled_at is None and row.end > self.now

    def _no_site(self, place: str) -> str:
        if not place:
            return "it names no place: choose a site for such entries"
        return f"no site is called {place[:80]}: say which one it is"

    def _stored(
        self, entry: Entry, site: Site, row: Downtime | None
    ) -> tuple[DowntimeOutcome, str]:
        wanted = DowntimeTerms(entry.start, entry.end, self.options.lead_time_s, entry.reason)
        if row is None:
            if entry.is_cancelled:
                return DowntimeOutcome.SKIPPED, "it is cancelled, and was never imported"
            self._add(entry, site, wanted)
            return DowntimeOutcome.ADDED, ""
        if kept := self._why_kept(entry, row):
            return DowntimeOutcome.SKIPPED, kept
        if why := "its source has cancelled it" if entry.is_cancelled else entry.skipped:
            self._cancel(row, why)
            return DowntimeOutcome.CANCELLED, why
        before = terms_of(row)
        if before.version == wanted.version:
            return DowntimeOutcome.UNCHANGED, ""
        self._change(entry, row, wanted)
        return DowntimeOutcome.CHANGED, f"it was {before}"

    def _why_kept(self, entry: Entry, row: Downtime) -> str:
        """Why a downtime that was imported before stays as it is, or an empty text."""
        if row.cancelled_at is not None:
            return f"it was cancelled by {row.cancelled_by}: enter it by hand if it takes place"
        if entry.sequence < row.sequence:
            return f"it is older (sequence {entry.sequence}) than what was imported"
        return self._changed_by_hand(row)

    def _changed_by_hand(self, row: Downtime) -> str:
        if self.options.overwrites or terms_of(row).version == row.imported:
            return ""
        return f"it was changed by hand since: it is {terms_of(row)}"

    def _add(self, entry: Entry, site: Site, wanted: DowntimeTerms) -> None:
        downtime = Downtime(
            site=site,
            **asdict(wanted),
            source=self.options.source,
            uid=entry.uid,
            recurrence=entry.recurrence,
            sequence=entry.sequence,
            imported=wanted.version,
        )
        save_downtime(downtime, actor=self.actor, now=self.now)

    def _change(self, entry: Entry, row: Downtime, wanted: DowntimeTerms) -> None:
        row.start, row.end = wanted.start, wanted.end
        row.lead_time_s, row.reason = wanted.lead_time_s, wanted.reason
        save_downtime(row, actor=self.actor, now=self.now)
        Downtime.objects.filter(pk=row.pk).update(
            sequence=entry.sequence, imported=terms_of(row).version
        )

    def _cancel(self, row: Downtime, why: str) -> None:
        cancel_downtimes([row.pk], actor=self.actor, now=self.now, reason=f"{self.reason} ({why})")
