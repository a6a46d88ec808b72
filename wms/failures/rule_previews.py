"""Selectors of normalisation rules, and a trial of changed ones on the latest failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matching.negotiation.deadline import Deadline
from wms.core.errors import NotFound
from wms.failures.models import Failure, FailureRule
from wms.failures.rules import as_rules, stored_rules, text_of
from wms.failures.selectors import messages_of

#: Latest failures on which a preview of rules is tried.
TRIED = 300
_CHANGES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Change:
    """A message whose text another set of rules changes."""

    message: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Preview:
    """Preview of another set of rules, tried on the latest failures.

    `left_out` were not tried, since the time was up.
    """

    tried: int
    left_out: int
    groups_before: int
    groups_after: int
    changed: int
    changes: Sequence[Change]


def preview_rules(rules: Sequence[FailureRule], *, deadline: Deadline) -> Preview:
    """Try rules, stored or not, on the latest failures; nothing is changed."""
    latest = list(Failure.objects.order_by("-pk")[:TRIED])
    reports = list(messages_of(latest).values())
    now, then = as_rules(stored_rules()), as_rules(rules)
    changes: dict[tuple[str, str], Change] = {}
    changed = tried = 0
    before, after = set(), set()
    for report in reports:
        if deadline.is_over:
            break
        tried += 1
        old, new = text_of(report, now), text_of(report, then)
        before.add((report.kind, old))
        after.add((report.kind, new))
        if old != new:
            changed += 1
            changes.setdefault((old, new), Change(report.message[:300], old, new))
    shown, left_out = list(changes.values())[:_CHANGES_SHOWN], len(reports) - tried
    return Preview(tried, left_out, len(before), len(after), changed, shown)


def rules_with(rule: FailureRule) -> list[FailureRule]:
    """All rules as they would be with this one stored, in their order."""
    others = [each for each in stored_rules() if each.pk != rule.pk or rule.pk is None]
    return sorted([*others, rule], key=lambda each: (each.position, each.pk or 10**9))


def find_rule(rule_id: int) -> FailureRule:
    """One rule. Raises NotFound."""
    rule = FailureRule.objects.filter(pk=rule_id).first()
    if rule is None:
        raise NotFound(f"There is no rule {rule_id}.")
    return rule
