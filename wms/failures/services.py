"""Services on failure groups (mute, resolve, reopen, categorise) and on normalisation rules.

Changes are checked for permission and audited; a rule that is stored or deleted begins the
regrouping of all failures, and is refused where others changed the rules since.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models.functions import Now

from wms.core.actors import Actor
from wms.core.audit import record_action, record_actions
from wms.core.database.saving import check_row, save_audited
from wms.core.errors import Conflict, InvalidInput, NotFound, ReasonRequired
from wms.core.transitions import Applied
from wms.failures.lifecycle import MACHINE
from wms.failures.models import Category, Failure, FailureGroup, FailureRule, RuleBook
from wms.failures.policy import require_changing_rules, require_steering
from wms.failures.rules import locked_rule_book
from wms.failures.states import NOTES

#: More rules than these would make each failure slow to group.
MAX_RULES = 60


def mute_groups(group_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Take groups out of sight; they go on counting."""
    return _steer("mute", group_ids, actor, reason)


def resolve_groups(group_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """The causes are removed; a group that happens again is shown as regressed."""
    return _steer("resolve", group_ids, actor, reason)


def reopen_groups(group_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Let groups be looked at again."""
    return _steer("reopen", group_ids, actor, reason)


@transaction.atomic
def _steer(event: str, group_ids: Collection[int], actor: Actor, reason: str) -> Applied:
    require_steering(actor, f"{event} failure groups")
    applied, _ = MACHINE.apply(event, group_ids, actor=actor, reason=reason.strip())
    _audit(event, applied.changed, actor, reason)
    return applied


@transaction.atomic
def categorise_groups(
    group_ids: Collection[int], *, category: str, actor: Actor, reason: str
) -> Applied:
    """Set the category of groups. Raises InvalidInput for an unknown category."""
    require_steering(actor, "categorise failure groups")
    if category not in Category.values:
        raise InvalidInput.of(f"must be one of {', '.join(Category.values)}", field="category")
    if not reason.strip():
        raise ReasonRequired("categorise")
    groups = FailureGroup.objects.filter(pk__in=group_ids).exclude(category=category)
    facts = {group.pk: {"category": [group.category, category]} for group in groups}
    MACHINE.note("categorise", facts, states=NOTES["categorise"], actor=actor)
    groups.update(category=category)
    _audit("categorise", list(facts), actor, reason, category=category)
    return Applied(changed=list(facts), skipped=sorted(set(group_ids) - set(facts)))


def _audit(event: str, group_ids: Collection[int], actor: Actor, reason: str, **facts: str) -> None:
    targets = [f"failure group {pk}" for pk in group_ids]
    record_actions(
        f"{event} failure group", targets=targets, actor=actor, reason=reason, facts=facts
    )


@transaction.atomic
def save_rule(rule: FailureRule, *, version: int, actor: Actor) -> bool:
    """Store a rule, new or changed, and begin to regroup; false when nothing changed.

    `version` is that of the rules that the actor has seen. Raises Conflict when somebody changed
    them since, and InvalidInput with every fault.
    """
    require_changing_rules(actor)
    book = _seen_book(version)
    check_row(rule)
    if rule.pk is None and FailureRule.objects.count() >= MAX_RULES:
        raise InvalidInput.of(f"There are {MAX_RULES} rules already, which is the most.")
    is_changed = save_audited(rule, target=f"failure rule {rule.name}", actor=actor)
    if is_changed:
        _begin_regrouping(book)
    return is_changed


@transaction.atomic
def delete_rule(rule_id: int, *, version: int, actor: Actor) -> None:
    """Remove a rule and begin to regroup. Raises NotFound or Conflict."""
    require_changing_rules(actor)
    book = _seen_book(version)
    rule = FailureRule.objects.filter(pk=rule_id).first()
    if rule is None:
        raise NotFound(f"There is no rule {rule_id}.")
    facts = {"pattern": rule.pattern, "placeholder": rule.placeholder, "position": rule.position}
    record_action("delete failure rule", target=f"failure rule {rule.name}", actor=actor,
                  facts=facts)  # fmt: skip
    rule.delete()
    _begin_regrouping(book)


def _seen_book(version: int) -> RuleBook:
    book = locked_rule_book()
    if book.version != version:
        raise Conflict("Somebody has changed the rules meanwhile: look at them again.")
    return book


def _begin_regrouping(book: RuleBook) -> None:
    """All failures are grouped anew, by the loop; groups change as it goes on."""
    RuleBook.objects.filter(pk=book.pk).update(
        version=book.version + 1,
        changed_at=Now(),
        to_regroup=Failure.objects.count(),
        regrouped=0,
        finished_at=None,
    )
