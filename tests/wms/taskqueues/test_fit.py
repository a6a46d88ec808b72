"""The conditions of the claim's statements are those of `Resource.refusal`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matching.task_queues.needs import BadNeeds, Needs
from matching.task_queues.resources import JobKind, Resource
from tests.wms.taskqueues.claiming import drain
from wms.core.models import User
from wms.taskqueues.models import TaskQueuePolicy
from wms.taskqueues.operations import Entry, enqueue
from wms.taskqueues.priorities import recompute

words = st.sets(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2).map(sorted)
word = st.sampled_from(["a", "b"])
#: Needs have a few of these each, so that most fit a resource but for one thing.
NEEDS = {
    "owner_group": word,
    "setup": word,
    "cpu_time_s": st.sampled_from([501, 5001]),
    "cores": st.integers(1, 3),
    "memory_mb": st.integers(0, 3),
    "gpus": st.integers(0, 2),
    "sites": words,
    "banned_sites": words,
    "queues": words,
    "platforms": words,
    "pilot_types": st.sampled_from([["private"], ["generic"], ["generic", "private"]]),
    "tags": words,
    "job_type": word,
}
RESOURCES = {
    "site": word,
    "cpu_time_s": st.sampled_from([499, 500, 5000]),
    "cores": st.integers(0, 2),
    "memory_mb": st.integers(0, 2),
    "gpus": st.integers(0, 2),
    "queue": word,
    "platform": word,
    "setup": word,
    "tags": words.map(tuple),
    "required_tags": word.map(lambda tag: (tag,)),
    "pilot_type": st.just("private"),
    "owner": st.sampled_from(["alice", "nobody"]),
    "owner_groups": st.sampled_from([("",), ("a",), ("a", "b")]),
    "foreign_groups": st.sampled_from([("a",), ("a", "b")]),
    "refused_owners": st.sampled_from([("alice",), ("nobody", "bob")]),
    "refused_groups": st.sampled_from([("a",), ("a", "b")]),
    "excluded": st.lists(
        st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["", "a", "b"])).map(
            lambda kind: JobKind(*kind)
        ),
        min_size=1,
        max_size=2,
    ).map(tuple),
}
USUAL = Resource(
    "a", cpu_time_s=10**6, cores=2, memory_mb=2, gpus=1, queue="a", platform="a", tags=("a", "b"),
)  # fmt: skip


@st.composite
def some(draw: st.DrawFn, strategies: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    """Values for at most two of the names."""
    names = draw(st.lists(st.sampled_from(sorted(strategies)), max_size=2, unique=True))
    return {name: draw(strategies[name]) for name in names}


def needs_of(owner: str, values: dict[str, Any]) -> Needs | None:
    try:
        return Needs.of(owner, **values)
    except BadNeeds:
        return None


some_needs = st.builds(needs_of, st.sampled_from(["alice", "charlie"]), some(NEEDS)).filter(bool)
some_resource = some(RESOURCES).map(lambda values: replace(USUAL, **values))


@pytest.mark.slow
@settings(max_examples=70, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    needs=st.lists(some_needs, min_size=5, max_size=15),
    resource=some_resource,
    law=st.sampled_from(["exponential", "uniform"]),
    are_placed=st.booleans(),
)
def test_a_resource_is_given_all_jobs_that_it_fits_and_no_other(
    alice: User, charlie: User, law: str, needs: list[Needs], resource: Resource, are_placed: bool
) -> None:
    with transaction.atomic():
        TaskQueuePolicy.objects.create(pk=1, law=law)
        enqueue([Entry(number, each) for number, each in enumerate(needs)])
        if are_placed:
            recompute()

        found = drain(resource)

        fitting = {n for n, each in enumerate(needs) if not resource.refusal(each)}
        assert sorted(found) == sorted(fitting)
        segments = [needs[number].cpu_time_s for number in found]
        assert segments == sorted(segments, reverse=True)
        transaction.set_rollback(True)
