"""Import of sites, queues and limits from YAML: previewed, then stored as previewed or not at all.

The plan says of each row whether it is created, changed, unchanged or refused, and which fields
change. The preview does what the import does, in a transaction that is rolled back; its token names
the plan, and an import of another plan is refused. Each row is checked, permitted and audited as
one that is changed by hand. What the document does not name is left as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
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
    names_account,
)
from wms.exchange.yaml_reader import DocumentRow, read_document
from wms.exchange.yaml_writer import written
from wms.jobs.limits import save_limit
from wms.pilots.pressure.pilot_limits import save_limit as save_pilot_limit
from wms.pilots.pressure_models import PilotLimit
from wms.sites.models import Site
from wms.sites.policy import require_configuring_some
from wms.sites.services import save_queue, save_site

_SAVERS: Mapping[str, Callable[..., Any]] = {
    # What works elsewhere has to show that it works here.
    SITE.word: partial(save_site, is_proven=False),
    QUEUE.word: save_queue,
    RUNNING_LIMIT.word: save_limit,
    PILOT_LIMIT.word: save_pilot_limit,
    SHARED_LIMIT.word: save_shared_limit,
}


class RowOutcome(StrEnum):
    """Outcomes of a row: created, changed, unchanged or refused."""

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
class ImportStep:
    """Outcome of one row of the document, with its line; `faults` say why it is refused."""

    kind: str
    title: str
    line: int
    outcome: RowOutcome
    changes: tuple[FieldChange, ...] = ()
    faults: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """Plan of an import, row by row. `token` identifies exactly this plan."""

    steps: tuple[ImportStep, ...]
    token: str = field(default="")

    def count(self, outcome: RowOutcome) -> int:
        """Number of rows with this outcome."""
        return sum(1 for step in self.steps if step.outcome == outcome)

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows with each outcome."""
        return {outcome.value: self.count(outcome) for outcome in RowOutcome}

    @property
    def is_refused(self) -> bool:
        """True when a row is refused: then nothing of it is stored."""
        return self.count(RowOutcome.REFUSED) > 0

    @property
    def changes_something(self) -> bool:
        """True when it would store anything."""
        return self.count(RowOutcome.CREATED) + self.count(RowOutcome.CHANGED) > 0


class PlanChanged(Conflict):
    """The plan has changed since it was confirmed: look at it again."""

    def __init__(self, plan: ImportPlan) -> None:
        super().__init__(
            "Nothing was stored: something was changed since the preview, or the document has "
            "faults. Look at what would be done now."
        )
        self.plan = plan


class _PreviewRollback(Exception):
    """Ends the transaction of a preview."""


def preview_import(text: str, *, actor: Actor) -> ImportPlan:
    """Plan of an import of the document; nothing is stored.

    Raises NotPermitted, and InvalidInput for a document that cannot be read.
    """
    entries = _readable(text, actor)
    plan = ImportPlan(())
    try:
        with transaction.atomic():
            plan = _carry_out(entries, actor=actor, reason="")
            raise _PreviewRollback
    except _PreviewRollback:
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


def _readable(text: str, actor: Actor) -> list[DocumentRow]:
    require_configuring_some(actor, "import sites")
    return read_document(text)


def _carry_out(entries: Sequence[DocumentRow], *, actor: Actor, reason: str) -> ImportPlan:
    # In the order of their names, so that two imports do not wait for each other in a circle.
    names = sorted({entry.site for entry in entries})
    locked = Site.objects.select_for_update(of=("self",)).filter(name__in=names).order_by("name")
    sites = {site.name: site for site in locked}
    steps = []
    for entry in entries:
        step = _import_step(entry, sites, actor=actor, reason=reason)
        steps.append(step)
    return ImportPlan(tuple(steps), _token(steps))


def _token(steps: Sequence[ImportStep]) -> str:
    described = [
        [step.kind, step.title, step.outcome, [[c.name, c.old, c.new] for c in step.changes]]
        for step in steps
    ]
    return hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode()).hexdigest()


def _import_step(
    entry: DocumentRow, sites: dict[str, Site], *, actor: Actor, reason: str
) -> ImportStep:
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


def _refusal(entry: DocumentRow, faults: Sequence[Finding]) -> ImportStep:
    return ImportStep(
        entry.kind.word, entry.title, entry.line, RowOutcome.REFUSED, faults=tuple(faults)
    )


def _placed(finding: Finding, entry: DocumentRow) -> Finding:
    """The finding at the line of its field in the document."""
    line = entry.lines.get(finding.field, entry.line)
    inner = "" if finding.line is None else f"line {finding.line} of it: "
    message = f"{finding.field}: {inner}{finding.message}" if finding.field else finding.message
    return Finding(message, file="YAML", line=line, field=finding.field)


def _stored(entry: DocumentRow, sites: dict[str, Site], *, actor: Actor, reason: str) -> ImportStep:
    """Store one row; returns its outcome and changes."""
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
    outcome = (
        RowOutcome.CREATED if is_new else RowOutcome.CHANGED if changes else RowOutcome.UNCHANGED
    )
    return ImportStep(entry.kind.word, entry.title, entry.line, outcome, changes)


def _row_of(entry: DocumentRow, sites: dict[str, Site]) -> models.Model:
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


def _key(entry: DocumentRow, name: str) -> Any:
    value = _value(entry, name, entry.values.get(name))
    return "" if value is None and not names_account(entry.kind, name) else value


def _value(entry: DocumentRow, name: str, value: Any) -> Any:
    """The value of a field; of people and groups the row of that name. Raises InvalidInput."""
    if not names_account(entry.kind, name):
        return value
    if value is None:
        return None
    related: Any = entry.kind.model._meta.get_field(name).related_model
    found = related._default_manager.filter(**{NAMES_OF[name]: value}).first()
    if found is None:
        message = f"there is no {related._meta.verbose_name} {value}"
        raise InvalidInput.of(message, field=name)
    return found
