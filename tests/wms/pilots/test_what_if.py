"""What if jobs needed less, or queues offered more: told before anything is changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.negotiation.explanation import MatchVerdict
from matching.task_queues.needs import Needs
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.explain.ad_changes import WhatIfChanges
from wms.explain.answers import answer_for_site, answer_for_task_queue
from wms.explain.needs import explain_needs
from wms.explain.queue_changes import (
    NEEDS,
    QueueChanges,
    changed_needs,
    jobs_for_site,
    queue_changes,
)
from wms.jobs.models import Job
from wms.sites.models import Queue, Site
from wms.taskqueues.models import TaskQueue
from wms.taskqueues.operations import Entry, enqueue

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def site_a(make_site) -> Site:
    return make_site("site-a", queue={"memory_mb": 2000, "cores": 2})


def _waiting(count: int, first: int = 10**9, **needs: Any) -> TaskQueue:
    made = Needs.of("alice", **needs)
    enqueue([Entry(first + number, made, 5) for number in range(count)])
    return TaskQueue.objects.get(key=made.key())


def _as_text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


@given(
    memory_mb=st.integers(0, 9000), cores=st.integers(1, 8), cpu_time_s=st.integers(0, 10**6),
    tags=st.lists(st.sampled_from(["a", "b"]), max_size=2),
)  # fmt: skip
@pytest.mark.django_db
def test_needs_that_are_changed_to_what_they_are_stay_the_same(**needs: Any) -> None:
    made = Needs.of("alice", **needs)

    same = changed_needs(made, {name: _as_text(getattr(made, name)) for name in NEEDS})

    assert same == made
    assert changed_needs(made, {}) is made


def test_no_change_of_queues_is_the_explanation(site_a: Site) -> None:
    needs = Needs.of("alice", memory_mb=1000)

    assert explain_needs(needs, now=NOW, changes=QueueChanges()) == explain_needs(needs, now=NOW)


@pytest.mark.parametrize("place", ["site-a", "site-a/batch"])
def test_a_queue_that_is_tried_takes_what_the_written_one_takes(site_a: Site, place: str) -> None:
    Queue.objects.update(name="batch")
    needs = Needs.of("alice", memory_mb=4000)
    changes = queue_changes({place: {"memory_mb": "4000"}})

    before, tried = explain_needs(needs, now=NOW), explain_needs(needs, now=NOW, changes=changes)
    assert Queue.objects.get().memory_mb == 2000
    Queue.objects.update(memory_mb=4000)

    assert before.verdict is MatchVerdict.NEVER
    assert tried.verdict is MatchVerdict.WAITING
    assert explain_needs(needs, now=NOW) == tried


def test_a_group_of_jobs_that_needs_less_is_told_before_and_after(
    site_a: Site, alice: User
) -> None:
    queue = _waiting(3, memory_mb=8000)

    answer = answer_for_task_queue(
        alice, queue.pk, now=NOW, changes=WhatIfChanges(needs={"memory_mb": "1500", "tags": ""})
    )

    assert answer.verdict is MatchVerdict.NEVER
    assert answer.after is not None
    assert answer.after.verdict is MatchVerdict.WAITING
    assert TaskQueue.objects.get().pk == queue.pk
    assert not Job.objects.exists()


def test_a_site_tells_how_many_waiting_jobs_its_queues_could_run(
    site_a: Site, make_site, alice: User
) -> None:
    make_site("site-b", queue={"memory_mb": 90_000})
    _waiting(3, memory_mb=1000)
    _waiting(4, first=2 * 10**9, memory_mb=8000)
    changes = WhatIfChanges(queues={"site-a": {"memory_mb": "8000"}})

    answer = answer_for_site(alice, "site-a", now=NOW, changes=changes)

    assert answer.jobs is not None
    assert answer.jobs_after is not None
    assert (answer.jobs.jobs, answer.jobs.fitting, answer.jobs_after.fitting) == (7, 3, 7)
    assert not answer.jobs.unseen


def test_only_so_many_task_queues_are_looked_at_and_it_says_so(
    site_a: Site, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wms.explain.queue_changes.MAX_TASK_QUEUES", 1)
    _waiting(3, memory_mb=1000)
    _waiting(4, first=2 * 10**9, memory_mb=8000)

    found, _ = jobs_for_site(alice, site_a.pk, QueueChanges())

    assert (found.task_queues, found.jobs, found.unseen) == (1, 4, True)


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ({"memory_mb": "much"}, "memory_mb must be a whole number"),
        ({"memory_mb": "9" * 12}, "memory_mb must be at most"),
        ({"owner": "bob"}, "owner cannot be tried"),
        ({"requirements": "((("}, "requirements"),
        ({"cores": "0"}, "cores must be from 1"),
        ({"setup": "x" * 100}, "setup has more than 64 characters"),
    ],
)
def test_needs_at_fault_are_told(db: None, needs: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message.replace("(", r"\(")):
        changed_needs(Needs.of("alice"), needs)


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        ({"nowhere": {"cores": "1"}}, "There is no queue or site nowhere"),
        ({"site-a/nothing": {"cores": "1"}}, "There is no queue or site site-a/nothing"),
        ({"site-a": {"max_pilots": "1"}}, "max_pilots cannot be tried"),
    ],
)
def test_queues_at_fault_are_told(
    site_a: Site, queues: dict[str, dict[str, str]], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        queue_changes(queues)
