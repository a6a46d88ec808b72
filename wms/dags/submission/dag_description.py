"""Submit description of a DAG as a whole, parsed and checked: ad, accounting group, limits.

Also its environment, labels, priority, rematch policy, and binding (of the DAG or of each job to a
site). Faults have file and line.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, parse_expression
from matching.descriptions.substitution import uses_macros
from matching.negotiation.fairshare import parse_limits
from matching.task_queues.impossible_requirements import constant_fault, never_true
from wms.accounting.models import AccountingGroup
from wms.accounting.services import group_for
from wms.core.errors import Finding, InvalidInput
from wms.core.labels import checked_labels, labels_in
from wms.core.models import User
from wms.dags.priorities import checked_priority
from wms.dags.states import Binding
from wms.jobs.description.submit_file import SubmitFile, parse_submit_file

_GROUP, _LIMITS, _REMATCH = "accounting_group", "concurrency_limits", "periodic_rematch"
_BINDING, _LABELS, _PRIORITY = "binding", "labels", "priority"
_COMMANDS = frozenset(
    {
        "requirements", "rank", "environment", _GROUP, _LIMITS, _REMATCH, _BINDING, _LABELS,
        _PRIORITY,
    }
)  # fmt: skip
#: HTCondor's commands that are like one of those, and mean nothing for a DAG as a whole.
_MEANINGLESS = frozenset({"accounting_group_user", "preempt_rank", "periodic_remove"})
_CLOSE = 0.8
#: Attributes that the negotiator sets in the ad of every DAG.
_RESERVED = re.compile(
    r"(?:MyType|TargetType|Owner|AccountingGroup|DagName|DagId|NodesTotal|NodesUnfinished"
    r"|Rematches|LastMatchName[0-9]+)\Z",
    re.IGNORECASE,
)


@dataclass(slots=True)
class DagDescription:
    """Parsed submit description of a DAG; everything is optional.

    `attributes` are the expressions of its ad, Requirements and Rank among them; `environment` is
    None where the description does not set it.
    """

    attributes: dict[str, str] = field(default_factory=dict)
    environment: str | None = None
    group: AccountingGroup | None = None
    limits: dict[str, float] = field(default_factory=dict)
    rematch_expression: str = ""
    binding: Binding = Binding.SITE
    labels: tuple[str, ...] = ()
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class _Fault:
    """A fault of a command or an attribute."""

    name: str
    message: str


def read_description(
    text: str, *, file: str, owner: User, binding: Binding | None = None
) -> tuple[DagDescription, list[Finding]]:
    """Parse and check the description of a DAG of `owner`. Never raises: faults are returned.

    `binding` is one that was given beside the description, and wins.
    """
    parsed = parse_submit_file(text, file=file)
    description = DagDescription(
        attributes=_ad_attributes(parsed),
        environment=parsed.commands.get("environment"),
        rematch_expression=parsed.commands.get(_REMATCH, "").strip(),
    )
    faults = _syntax_faults(description)
    if not faults and not parsed.findings:
        faults += _meaning_faults(description)
    faults += _read_group(parsed, description, owner)
    faults += _read_limits(parsed, description)
    faults += _read_binding(parsed, description, binding)
    faults += _read_labels(parsed, description)
    faults += _read_priority(parsed, description)
    faults += _misspelt(parsed)
    lines = {name.lower(): line for name, line in parsed.lines.items()}
    findings = [Finding(f.message, file=file, line=lines.get(f.name.lower())) for f in faults]
    return description, [*parsed.findings, *findings]


def _misspelt(parsed: SubmitFile) -> list[_Fault]:
    """Faults for unknown commands that are similar to one with a meaning here."""
    faults = []
    for command in parsed.commands.keys() - _COMMANDS - _MEANINGLESS:
        close = difflib.get_close_matches(command, _COMMANDS, 1, _CLOSE)
        if close:
            message = f"{command} is no command; did you mean {close[0]}?"
            faults.append(_Fault(command, message))
    return faults


def _ad_attributes(parsed: SubmitFile) -> dict[str, str]:
    """Attributes of the DAG's ad; of those that differ in case only the last one wins."""
    given = dict(parsed.attributes)
    for name, command in (("Requirements", "requirements"), ("Rank", "rank")):
        if command in parsed.commands:
            given.pop(name, None)
            given[name] = parsed.commands[command]
    last = {name.lower(): name for name in given}
    return {name: given[name] for name in last.values()}


def _syntax_faults(description: DagDescription) -> list[_Fault]:
    """Faults for macros and reserved names in the ad, and for a rematch expression that does not
    parse.
    """
    faults = []
    expressions = {**description.attributes, _REMATCH: description.rematch_expression}
    for name, text in expressions.items():
        if uses_macros(text):
            message = f"{name}: macros cannot be used in the ad of a DAG"
            faults.append(_Fault(name, message))
        if _RESERVED.match(name):
            faults.append(_Fault(name, f"{name} is set by Pilotage"))
    if description.rematch_expression and not faults:
        try:
            parse_expression(description.rematch_expression)
        except AdError as error:
            faults.append(_Fault(_REMATCH, f"{_REMATCH}: {error.message}"))
    return faults


def _meaning_faults(description: DagDescription) -> list[_Fault]:
    """Faults for expressions that cost too much, or whose value is the same for every site."""
    attributes, rematch = description.attributes, description.rematch_expression
    try:
        check_cost({**attributes, **({_REMATCH: rematch} if rematch else {})})
    except AdError as error:
        return [_Fault(error.attribute, str(error))]
    faults = []
    by_name = {name.lower(): text for name, text in attributes.items()}
    why = never_true(by_name.get("requirements", "true"), attributes)
    if why:
        message = f"Requirements can never be true: whatever the site is, {why}"
        faults.append(_Fault("requirements", message))
    why = constant_fault(rematch or "true", {})
    if why:
        faults.append(_Fault(_REMATCH, f"{_REMATCH}: {why}"))
    return faults


def _read_group(parsed: SubmitFile, description: DagDescription, owner: User) -> list[_Fault]:
    name = parsed.commands.get(_GROUP, "").strip().strip('"')
    if not name:
        return []
    try:
        description.group = group_for(owner, name)
    except InvalidInput as error:
        return [_Fault(_GROUP, f"{_GROUP}: {f.message}") for f in error.findings]
    return []


def _read_binding(
    parsed: SubmitFile, description: DagDescription, given: Binding | None
) -> list[_Fault]:
    text = parsed.commands.get(_BINDING, "").strip().lower() or Binding.SITE
    if text not in Binding.values:
        known = " or ".join(Binding.values)
        return [_Fault(_BINDING, f"{_BINDING}: must be {known}, not {text[:80]}")]
    description.binding = given or Binding(text)
    if description.binding is not Binding.JOB:
        return []
    faults = []
    if description.rematch_expression:
        faults.append(
            _Fault(
                _REMATCH,
                f"{_REMATCH}: it is about the site of the DAG, which has none with binding = job: "
                "the sites are asked anew in each negotiation",
            )
        )
    if "rank" in {name.lower() for name in description.attributes}:
        message = "rank: with binding = job no site is chosen, pilots of all that accept draw jobs"
        faults.append(_Fault("rank", message))
    return faults


def _read_labels(parsed: SubmitFile, description: DagDescription) -> list[_Fault]:
    try:
        description.labels = checked_labels(labels_in(parsed.commands.get(_LABELS, "")))
    except ValueError as error:
        return [_Fault(_LABELS, f"{_LABELS}: {error}")]
    return []


def _read_priority(parsed: SubmitFile, description: DagDescription) -> list[_Fault]:
    text = parsed.commands.get(_PRIORITY, "").strip()
    if not text:
        return []
    try:
        description.priority = checked_priority(text)
    except ValueError as error:
        return [_Fault(_PRIORITY, f"{_PRIORITY}: {error}")]
    return []


def _read_limits(parsed: SubmitFile, description: DagDescription) -> list[_Fault]:
    try:
        description.limits = parse_limits(parsed.commands.get(_LIMITS, ""))
    except ValueError as error:
        return [_Fault(_LIMITS, f"{_LIMITS}: {error}")]
    return []
