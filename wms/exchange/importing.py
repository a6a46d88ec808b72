"""Bringing sites to the state that a document describes: previewed, then all of it or nothing.

The preview does what the import does, in a transaction that is taken back: what it shows was
decided by the services that will store it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.db import IntegrityError, models, transaction

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, Finding, InvalidInput, PilotageError
from wms.dags.services.shared_limits import save_shared_limit
from wms.exchange.fields import (
    NAMES_OF,
    PILOT_LIMIT,
    QUEUE,
    RUNNING_LIMIT,
    SHARED_LIMIT,
    SITE,
    is_named,
)
from wms.exchange.reading import Entry, read_document
from wms.exchange.writing import written
from wms.jobs.limits import save_limit
from wms.pilots.pressure.pilot_limits import save_limit as save_pilot_limit
from wms.pilots.pressure_models import PilotLimit
from wms.sites.models import Site
from wms.sites.policy import require_configuring_some
from wms.sites.services import save_queue, save_site

_SAVERS: Mapping[str, Callable[..., Any]] = {
    SITE.word: save_site,
    QUEUE.word: save_queue,
    RUNNING_LIMIT.word: save_limit,
    PILOT_LIMIT.word: save_pilot_limit,
    SHARED_LIMIT.word: save_shared_limit,
}


class Outcome(StrEnum):
    """What becomes of a row."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field with its value before and after; before a row is made there is none."""

    name: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one row of the document, from its line on; `faults` say why it is refused."""

    kind: str
    title: str
    line: int
    outcome: Outcome
    changes: tuple[FieldChange, ...] = ()
    faults: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import does, row by row. `token` stands for exactly this."""

    steps: tuple[Step, ...]
    token: str = field(default="")

    def count(self, outcome: Outcome) -> int:
        """How many rows have this outcome."""
        return sum(1 for step in self.steps if step.outcome == outcome)

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each outcome."""
        return {outcome.value: self.count(outcome) for outcome in Outcome}

    @property
    def is_refused(self) -> bool:
        """True when a row is refused: then nothing of it is stored."""
        return self.count(Outcome.REFUSED) > 0

    @property
    def changes_something(self) -> bool:
        """True when it would store anything."""
        return self.count(Outcome.CREATED) + self.count(Outcome.CHANGED) > 0


class PlanChanged(Conflict):
    """What was confirmed is not what would be done now: look at it again."""

    def __init__(self, plan: ImportPlan) -> None:
        super().__init__(
            "Nothing was stored: something was changed since the preview, or the document has "
            "faults. Look at what would be done now."
        )
        self.plan = plan


class _TakenBack(Exception):
    """Ends the transaction of a preview."""


def preview_import(text: str, *, actor: Actor) -> ImportPlan:
    """What importing the document would do; nothing is stored.

    Raises NotPermitted, and InvalidInput for a document that cannot be read.
    """
    entries = _readable(text, actor)
    plan = ImportPlan(())
    try:
        with transaction.atomic():
            plan = _carry_out(entries, actor=actor, reason="")
            raise _TakenBack
    except _TakenBack:
        return plan


@transaction.atomic
def import_sites(text: str, *, token: str, actor: Actor, reason: str = "") -> ImportPlan:
    """Store what the preview with this token showed: all of it, or nothing.

    Raises NotPermitted, InvalidInput, and PlanChanged when it would do anything else now, or when
    a row is refused.
    """
    plan = _carry_out(_readable(text, actor), actor=actor, reason=reason)
    if plan.is_refused or plan.token != token:
        # Leaving by an error takes everything back.
        raise PlanChanged(plan)
    if plan.changes_something:
        facts = {**plan.counts, "sha256": hashlib.sha256(text.encode()).hexdigest()}
        record_action("import sites", target="sites", actor=actor, reason=reason, facts=facts)
    return plan


def _readable(text: str, actor: Actor) -> list[Entry]:
    require_configuring_some(actor, "import sites")
    return read_document(text)


def _carry_out(entries: Sequence[Entry], *, actor: Actor, reason: str) -> ImportPlan:
    # In the order of their names, so that two imports do not wait for each other in a circle.
    names = sorted({entry.site for entry in entries})
    locked = Site.objects.select_for_update(of=("self",)).filter(name__in=names).order_by("name")
    sites = {site.name: site for site in locked}
    steps = []
    for entry in entries:
        step = _step(entry, sites, actor=actor, reason=reason)
        steps.append(step)
    return ImportPlan(tuple(steps), _token(steps))


def _token(steps: Sequence[Step]) -> str:
    told = [
        [step.kind, step.title, step.outcome, [[c.name, c.old, c.new] for c in step.changes]]
        for step in steps
    ]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def _step(entry: Entry, sites: dict[str, Site], *, actor: Actor, reason: str) -> Step:
    try:
        with transaction.atomic():
            return _stored(entry, sites, actor=actor, reason=reason)
    except InvalidInput as error:
        return _refusal(entry, [_placed(finding, entry) for finding in error.findings])
    except PilotageError as error:
        return _refusal(entry, [Finding(str(error), file="YAML", line=entry.line)])
    except IntegrityError:
        # Its checks saw nothing of what another transaction was about to store.
        message = "somebody else has stored the same at this moment: read the document again"
        return _refusal(entry, [Finding(message, file="YAML", line=entry.line)])


def _refusal(entry: Entry, faults: Sequence[Finding]) -> Step:
    return Step(entry.kind.word, entry.title, entry.line, Outcome.REFUSED, faults=tuple(faults))


def _placed(finding: Finding, entry: Entry) -> Finding:
    """The finding at the line of its field in the document."""
    line = entry.lines.get(finding.field, entry.line)
    inner = "" if finding.line is None else f"line {finding.line} of it: "
    message = f"{finding.field}: {inner}{finding.message}" if finding.field else finding.message
    return Finding(message, file="YAML", line=line, field=finding.field)


def _stored(entry: Entry, sites: dict[str, Site], *, actor: Actor, reason: str) -> Step:
    """Store one row, and tell what that changed."""
    row = _row_of(entry, sites)
    is_new = row.pk is None
    names = entry.kind.names if is_new else tuple(entry.values)
    old = {name: None if is_new else written(entry.kind, row, name) for name in names}
    for name, value in entry.values.items():
        setattr(row, name, _value(entry, name, value))
    _SAVERS[entry.kind.word](row, actor=actor, reason=reason)
    if isinstance(row, Site):
        sites[row.name] = row
    # Read from the row: the services bring some values into their usual form.
    changes = tuple(
        FieldChange(name, old[name], new)
        for name in names
        for new in [written(entry.kind, row, name)]
        if new != old[name]
    )
    outcome = Outcome.CREATED if is_new else Outcome.CHANGED if changes else Outcome.UNCHANGED
    return Step(entry.kind.word, entry.title, entry.line, outcome, changes)


def _row_of(entry: Entry, sites: dict[str, Site]) -> models.Model:
    """The stored row that the entry means, locked, or a new one."""
    site = sites.get(entry.site)
    if entry.kind is SITE:
        return site or Site()
    if site is None:
        raise Conflict(f"the site {entry.site} is not there and is not made")
    model = entry.kind.model
    fixed: dict[str, Any] = {"site": site}
    if model is PilotLimit:
        fixed["scope"] = PilotLimit.Scope.SITE
    keys = {name: _key(entry, name) for name in entry.kind.keys}
    rows = model._default_manager.select_for_update(of=("self",)).filter(**fixed, **keys)
    return rows.first() or model(**fixed)


def _key(entry: Entry, name: str) -> Any:
    value = _value(entry, name, entry.values.get(name))
    return "" if value is None and not is_named(entry.kind, name) else value


def _value(entry: Entry, name: str, value: Any) -> Any:
    """The value of a field; of people and groups the row of that name. Raises InvalidInput."""
    if not is_named(entry.kind, name):
        return value
    if value is None:
        return None
    related: Any = entry.kind.model._meta.get_field(name).related_model
    found = related._default_manager.filter(**{NAMES_OF[name]: value}).first()
    if found is None:
        message = f"there is no {related._meta.verbose_name} {value}"
        raise InvalidInput.of(message, field=name)
    return found
