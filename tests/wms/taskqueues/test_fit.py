"""The conditions of the claim's statements are those of `Resource.refusal`."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matching.needs import Needs
from matching.resources import JobKind, Resource
from tests.wms.taskqueues.claiming import drain
from wms.core.models import User
from wms.taskqueues.models import TaskQueuePolicy
from wms.taskqueues.priorities import recompute
from wms.taskqueues.services import Entry, enqueue

words = st.sets(st.sampled_from(["a", "b", "c"]), max_size=2).map(sorted)
word = st.sampled_from(["", "a", "b"])


@st.composite
def some_needs(draw: st.DrawFn) -> Needs:
    sites = draw(words)
    given_needs: dict[str, Any] = {
        "owner_group": draw(word),
        "setup": draw(st.sampled_from(["", "", "", "a"])),
        "cpu_time_s": draw(st.sampled_from([1, 501, 5001])),
        "cores": draw(st.integers(1, 2)),
        "max_cores": 2,
        "memory_mb": draw(st.integers(0, 1)),
        "gpus": draw(st.sampled_from([0, 0, 1])),
        "sites": sites,
        "banned_sites": [site for site in draw(words) if site not in sites],
        "queues": draw(st.sampled_from([[], [], ["q"]])),
        "platforms": draw(words),
        "pilot_types": draw(st.sampled_from([[], [], ["private"], ["generic", "private"]])),
        "tags": draw(words),
        "job_type": draw(word),
    }
    return Needs.of(draw(st.sampled_from(["alice", "charlie"])), **given_needs)


@st.composite
def some_resource(draw: st.DrawFn) -> Resource:
    return Resource(
        site=draw(st.sampled_from(["a", "b", "d"])),
        cpu_time_s=draw(st.sampled_from([499, 500, 6000, 10**6])),
        cores=draw(st.integers(0, 3)),
        memory_mb=draw(st.integers(0, 1)),
        gpus=draw(st.integers(0, 1)),
        queue=draw(st.sampled_from(["q", "r", ""])),
        platform=draw(word),
        setup=draw(st.sampled_from(["", "", "a"])),
        tags=tuple(draw(words)),
        required_tags=tuple(draw(st.sampled_from([[], [], ["a"]]))),
        pilot_type=draw(st.sampled_from(["generic", "private"])),
        owner=draw(st.sampled_from(["", "", "alice", "nobody"])),
        owner_groups=tuple(draw(st.sampled_from([[], [], [""], ["a", "b"]]))),
        excluded=tuple(
            JobKind(job_type, group)
            for job_type, group in draw(st.lists(st.tuples(word, word), max_size=2))
            if job_type or group
        ),
    )


@pytest.mark.parametrize("law", ["exponential", "uniform"])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    needs=st.lists(some_needs(), min_size=1, max_size=12),
    resource=some_resource(),
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
