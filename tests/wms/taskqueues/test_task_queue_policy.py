from __future__ import annotations

from typing import Any

import pytest

from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted
from wms.core.models import AuditEntry, Role, User
from wms.taskqueues.models import TaskQueuePolicy
from wms.taskqueues.task_queue_policy import save_policy, task_queue_policy

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga() -> Actor:
    return Actor.person(User.objects.create_user("olga", role=Role.OPERATOR))


def test_before_anybody_sets_it_the_policy_is_the_documented_one() -> None:
    policy = task_queue_policy()

    assert policy.cpu_segments_s == [500, 5_000, 50_000, 300_000]
    assert (policy.law, policy.uses_feedback) == ("exponential", True)
    assert not TaskQueuePolicy.objects.exists()


def test_an_operator_changes_the_policy_and_it_is_told_in_the_audit_trail(olga: Actor) -> None:
    policy = task_queue_policy()
    policy.law = "uniform"
    policy.cpu_segments_s = [3600, 86_400]

    save_policy(policy, actor=olga)

    assert task_queue_policy().cpu_segments_s == [3600, 86_400]
    assert AuditEntry.objects.filter(target="TaskQueue policy", actor=olga.name).exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cpu_segments_s", []),
        ("cpu_segments_s", [500, 500]),
        ("cpu_segments_s", [5_000, 500]),
        ("cpu_segments_s", [0, 500]),
        ("law", "fair"),
        ("default_share", 0.0),
        ("default_share", float("nan")),
        ("max_correction", 0.5),
    ],
)
def test_a_policy_without_sense_is_refused_with_the_field(
    olga: Actor, field: str, value: Any
) -> None:
    policy = task_queue_policy()
    setattr(policy, field, value)

    with pytest.raises(InvalidInput) as refused:
        save_policy(policy, actor=olga)

    assert {finding.field.partition(".")[0] for finding in refused.value.findings} == {field}
    assert not TaskQueuePolicy.objects.exists()


def test_others_may_not_change_it(alice: User) -> None:
    with pytest.raises(NotPermitted):
        save_policy(task_queue_policy(), actor=Actor.person(alice))
