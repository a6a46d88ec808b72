"""What people decide about groups is permitted, reasoned and audited; rules are checked."""

from __future__ import annotations

import pytest
from django.utils import timezone

from matching.negotiation.deadline import Deadline
from tests import factories
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.failures import grouping
from wms.failures.models import Failure, FailureGroup, FailureRule
from wms.failures.rule_previews import preview_rules, rules_with
from wms.failures.rules import rule_book
from wms.failures.services import (
    categorise_groups,
    delete_rule,
    mute_groups,
    reopen_groups,
    resolve_groups,
    save_rule,
)


@pytest.fixture
def group(alice: User) -> FailureGroup:
    """A group of one failure."""
    worker = factories.pilot()
    factories.job(alice)
    factories.run_job(worker, exit_code=7)
    grouping.run_cycle(timezone.now())
    return FailureGroup.objects.get()


@pytest.mark.parametrize("change", [mute_groups, resolve_groups])
def test_a_decision_is_made_with_a_reason_and_audited_once(
    change: object, group: FailureGroup, sam: User
) -> None:
    with pytest.raises(ReasonRequired):
        change([group.pk], actor=Actor.person(sam), reason=" ")  # type: ignore[operator]
    change([group.pk], actor=Actor.person(sam), reason="known")  # type: ignore[operator]

    group.refresh_from_db()
    assert (group.state_reason, group.events.get().actor) == ("known", "sam")
    entry = AuditEntry.objects.get(target=f"failure group {group.pk}")
    assert (entry.actor, entry.reason) == ("sam", "known")


def test_users_may_not_decide_about_groups(group: FailureGroup, alice: User) -> None:
    for change in (mute_groups, resolve_groups, reopen_groups):
        with pytest.raises(NotPermitted):
            change([group.pk], actor=Actor.person(alice), reason="mine")
    with pytest.raises(NotPermitted):
        categorise_groups([group.pk], category="site", actor=Actor.person(alice), reason="mine")


def test_a_muted_group_goes_on_counting_and_stays_muted(
    group: FailureGroup, alice: User, sam: User
) -> None:
    mute_groups([group.pk], actor=Actor.person(sam), reason="known")
    factories.job(alice)
    factories.run_job(factories.pilot(), exit_code=7)

    grouping.run_cycle(timezone.now())

    group.refresh_from_db()
    assert (group.state, group.total) == ("muted", 2)


def test_a_category_is_assigned_with_its_event_once(group: FailureGroup, sam: User) -> None:
    actor = Actor.person(sam)

    first = categorise_groups([group.pk], category="data", actor=actor, reason="the catalogue")
    again = categorise_groups([group.pk], category="data", actor=actor, reason="the catalogue")

    group.refresh_from_db()
    assert (group.category, first.changed, again.changed) == ("data", [group.pk], [])
    assert group.events.get().facts == {"category": ["payload", "data"]}
    with pytest.raises(InvalidInput) as refused:
        categorise_groups([group.pk], category="moon", actor=actor, reason="look")
    assert [each.field for each in refused.value.findings] == ["category"]


def test_only_operators_change_rules(group: FailureGroup, sam: User) -> None:
    rule = FailureRule(name="Mine", pattern="x", placeholder="x")

    with pytest.raises(NotPermitted):
        save_rule(rule, version=1, actor=Actor.person(sam))
    with pytest.raises(NotPermitted):
        delete_rule(1, version=1, actor=Actor.person(sam))


def test_a_rule_that_cannot_be_read_is_refused_at_its_field(
    group: FailureGroup, olga: User
) -> None:
    rule = FailureRule(name="Slow", pattern="(a++)b", placeholder="x")

    with pytest.raises(InvalidInput) as refused:
        save_rule(rule, version=1, actor=Actor.person(olga))

    assert [finding.field for finding in refused.value.findings] == ["pattern"]
    assert rule_book().version == 1


def test_rules_that_somebody_else_has_changed_are_not_overwritten(
    group: FailureGroup, olga: User
) -> None:
    first = FailureRule(name="First", pattern="x", placeholder="x")
    second = FailureRule(name="Second", pattern="y", placeholder="y")
    save_rule(first, version=1, actor=Actor.person(olga))

    with pytest.raises(Conflict, match="rules"):
        save_rule(second, version=1, actor=Actor.person(olga))

    assert not FailureRule.objects.filter(name="Second").exists()


def test_storing_a_rule_as_it_is_regroups_nothing(group: FailureGroup, olga: User) -> None:
    rule = FailureRule.objects.get(name="Number")

    assert not save_rule(rule, version=1, actor=Actor.person(olga))
    assert rule_book().version == 1


def test_a_change_of_rules_is_audited_with_what_changed(group: FailureGroup, olga: User) -> None:
    rule = FailureRule.objects.get(name="Number")
    rule.placeholder = "number"

    save_rule(rule, version=1, actor=Actor.person(olga))

    entry = AuditEntry.objects.get(target="failure rule Number")
    assert entry.facts == {"placeholder": ["n", "number"]}


def test_a_preview_tells_what_would_change_and_changes_nothing(group: FailureGroup) -> None:
    rule = FailureRule.objects.get(name="Exit codes and signals")
    rule.is_enabled = False

    preview = preview_rules(rules_with(rule), deadline=Deadline(None, 0))

    assert (preview.tried, preview.groups_before, preview.groups_after) == (1, 1, 1)
    [change] = preview.changes
    assert change.before.endswith(" 7")
    assert change.after == change.before.replace("7", "<n>")
    assert FailureRule.objects.get(pk=rule.pk).is_enabled
    assert Failure.objects.get().group.text == change.before


def test_a_preview_tells_what_it_had_no_time_for(group: FailureGroup) -> None:
    rule = FailureRule.objects.get(name="Number")

    preview = preview_rules(rules_with(rule), deadline=Deadline(lambda: 0.0, -1))

    assert (preview.tried, preview.left_out) == (0, 1)
