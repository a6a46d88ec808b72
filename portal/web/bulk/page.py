"""Template contexts of the bulk operation pages: preview, progress, outcomes by object.

Also links to objects and lists, and the arguments and confirmation that the forms send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, QueryDict
from django.urls import reverse

from portal.shared.state_badges import badge_of
from portal.web.lists.bar import query_of
from portal.web.lists.paging import numbered_page_of
from wms.actions.arguments import Argument, ArgumentType
from wms.actions.kinds import Kind
from wms.actions.registry import find_kind
from wms.bulk.models import BulkOperation
from wms.bulk.policy import may_act, may_stop
from wms.bulk.preview import preview_of
from wms.bulk.selectors import counts_of, events_of, item_lines, items_of
from wms.bulk.services import Confirmation, SelectionChanged
from wms.bulk.states import ACTIVE, BulkState, Outcome
from wms.core.errors import InvalidInput, PilotageError, ReasonRequired
from wms.core.labels import labels_in
from wms.core.models import User

_ITEMS_SHOWN = 50
_EVENTS_SHOWN = 20
_PREFIX = "with-"
#: The names of the kinds in the language of states, and of their pages.
_ONE = {
    "dags": "dag", "clusters": "cluster", "jobs": "job", "schedules": "schedule", "pilots": "pilot",
    "placements": "placement", "sites": "site",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProgressSegment:
    """Segment of an operation's progress bar."""

    outcome: str
    tone: str
    count: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class OutcomeFacet:
    """An outcome, the number of objects with it, and the link to these alone."""

    outcome: str
    count: int
    query: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ArgumentField:
    """Form field of an action's argument."""

    argument: Argument
    name: str
    value: Any
    fault: str = ""

    @property
    def is_yes_no(self) -> bool:
        """True for a check box."""
        return self.argument.type == ArgumentType.YES_NO

    @property
    def is_number(self) -> bool:
        """True for a field of digits."""
        return self.argument.type == ArgumentType.WHOLE


def address_of(kind: Kind, pk: int, label: str) -> str:
    """Address of an object's page."""
    return reverse(f"web:{_ONE[kind.name]}", args=[label if kind.name == "sites" else pk])


def list_address(operation: BulkOperation) -> str:
    """Address of the list from which the objects were chosen, with its filter."""
    query = query_of(operation.filters or {})
    return reverse(f"web:{operation.list_name}") + (query if operation.filters else "")


def _common(operation: BulkOperation) -> dict[str, Any]:
    kind = find_kind(operation.list_name)
    return {
        "operation": operation,
        "kind": kind,
        "one": _ONE[kind.name],
        "action": kind.find_action(operation.action),
        "back": list_address(operation),
        "filters": [f"{name} {', '.join(v)}" for name, v in (operation.filters or {}).items()],
    }


def preview_context(
    request: HttpRequest, operation: BulkOperation, error: PilotageError | None
) -> dict[str, Any]:
    """Context of the preview; after a refusal with the typed values and the faults."""
    common = _common(operation)
    found = preview_of(operation, request.user)
    faults = _faults(error)
    typed = request.POST if error else None
    fields = _fields(operation, typed, faults)
    beside = {"reason", "typed_count", *(field.argument.name for field in fields)}
    return {
        **common,
        "preview": found,
        "samples": [
            (sample, address_of(common["kind"], sample.pk, sample.label))
            for sample in found.samples
        ],
        "fields": fields,
        "reason": operation.reason if typed is None else typed.get("reason", ""),
        "typed": "" if typed is None else typed.get("typed", ""),
        # What is shown at its field is not told twice.
        "error": None if faults and beside.issuperset(faults) else error,
        "faults": faults,
        "has_dropped": isinstance(error, SelectionChanged),
        "differs": _differs(operation),
        "is_own": operation.owner_id == request.user.pk,
    }


def _differs(operation: BulkOperation) -> bool:
    """True when the list showed another exact number than was frozen."""
    shown = operation.shown_count
    return shown is not None and not operation.is_shown_estimate and shown != operation.frozen_count


def _faults(error: PilotageError | None) -> dict[str, str]:
    if isinstance(error, ReasonRequired):
        return {"reason": str(error)}
    if isinstance(error, InvalidInput):
        return {each.field: each.message for each in error.findings}
    return {}


def _fields(
    operation: BulkOperation, typed: QueryDict | None, faults: Mapping[str, str]
) -> Sequence[ArgumentField]:
    action = find_kind(operation.list_name).find_action(operation.action)
    fields = []
    for argument in action.arguments:
        name = _PREFIX + argument.name
        value = operation.arguments.get(argument.name, argument.default)
        if typed is not None:
            value = typed.get(name, "")
        if isinstance(value, list):
            value = ", ".join(value)
        value = "" if value is None else value
        fields.append(ArgumentField(argument, name, value, faults.get(argument.name, "")))
    return fields


def arguments_of(given: QueryDict, operation: BulkOperation) -> dict[str, Any]:
    """Arguments that the form sends. Raises InvalidInput for a field that is not a number."""
    action = find_kind(operation.list_name).find_action(operation.action)
    found: dict[str, Any] = {}
    for argument in action.arguments:
        text = given.get(_PREFIX + argument.name, "").strip()
        if argument.type == ArgumentType.YES_NO:
            found[argument.name] = bool(text)
        elif argument.type == ArgumentType.NAMES:
            found[argument.name] = labels_in(text) or None
        else:
            found[argument.name] = _whole(text, argument.name)
    return found


def confirmation_of(given: QueryDict, arguments: Mapping[str, Any]) -> Confirmation:
    """Confirmation that the form sends. Raises InvalidInput."""
    return Confirmation(
        seen=_whole(given.get("seen", ""), "seen"),
        typed=_whole(given.get("typed", "").replace(",", ""), "typed_count"),
        reason=given.get("reason", ""),
        arguments=arguments,
        accepts="accepts" in given,
    )


def _whole(text: str, field: str) -> int | None:
    plain = text.strip()
    if not plain:
        return None
    if not (plain.isascii() and plain.isdigit() and len(plain) < 10):
        raise InvalidInput.of("Give a whole number.", field=field)
    return int(plain)


def operation_context(request: HttpRequest, operation: BulkOperation) -> dict[str, Any]:
    """Context of a confirmed operation: progress, and the outcome of each object."""
    common = _common(operation)
    chosen = request.GET.get("outcome", "")
    chosen = chosen if chosen in Outcome.values else ""
    items = items_of(operation, [chosen] if chosen else ())
    stretch = numbered_page_of(items, request.GET, by="pk", page_size=_ITEMS_SHOWN)
    counts = counts_of(operation)
    user: User = request.user
    has_ended = operation.state not in ACTIVE and operation.state != BulkState.PREVIEW
    return {
        **common,
        "parts": _parts(operation, counts),
        "facets": [
            OutcomeFacet(name, count, f"?outcome={name}", name == chosen)
            for name, count in counts.items()
        ],
        "chosen": chosen,
        "stretch": stretch,
        "lines": [
            (
                line,
                address_of(common["kind"], line.item.object_id, line.label) if line.label else "",
            )
            for line in item_lines(user, operation, stretch.rows)
        ],
        "events": list(events_of(operation)[:_EVENTS_SHOWN]),
        "dealt_with": operation.frozen_count - operation.pending_count,
        "may_stop": operation.state in ACTIVE and may_stop(user, operation),
        "to_retry": operation.failed_count + operation.pending_count
        if has_ended and may_act(user)
        else 0,
    }


def _parts(operation: BulkOperation, counts: Mapping[str, int]) -> list[ProgressSegment]:
    parts, x = [], 0.0
    for outcome in (Outcome.DONE.value, Outcome.SKIPPED.value, Outcome.FAILED.value):
        width = 100 * counts[outcome] / operation.frozen_count
        if width:
            tone = badge_of(outcome).tone
            parts.append(
                ProgressSegment(outcome, tone, counts[outcome], round(x, 3), round(width, 3))
            )
        x += width
    return parts
