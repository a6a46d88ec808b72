"""The grouping of TaskQueues changes nothing of who is served."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from matching.needs import Needs
from matching.pressure import Room
from matching.resources import JobKind, Resource, offer_refusal
from wms.pilots.unserved import Kinds, Unserved
from wms.taskqueues.selectors import Demand

WORDS = {
    "owner_group": st.sampled_from(["", "physics"]),
    "setup": st.sampled_from(["", "production"]),
    "job_type": st.sampled_from(["", "User"]),
}
LISTS = {
    "sites": st.sampled_from([(), ("a",), ("b",), ("a", "b")]),
    "tags": st.sampled_from([(), ("ssd",)]),
    "pilot_types": st.sampled_from([(), ("private",), ("generic",)]),
    "submit_pools": st.sampled_from([(), ("main",)]),
}
REQUIREMENTS = st.sampled_from(
    [
        "",
        "Memory > 1000",
        "Memory < 10",
        'MY.Owner == "alice"',
        'ACCOUNTINGGROUP == "physics"',
        'JobType == "User"',
        'Machine == "wn1"',
    ]
)
NEEDS = st.builds(
    Needs.of,
    st.sampled_from(["alice", "bob"]),
    cores=st.integers(1, 2),
    max_cores=st.integers(2, 3),
    requirements=REQUIREMENTS,
    **WORDS,
    **LISTS,
)
OFFERS = st.builds(
    Resource,
    site=st.sampled_from(["a", "b"]),
    cpu_time_s=st.just(500),
    cores=st.integers(1, 4),
    memory_mb=st.just(2000),
    setup=st.sampled_from(["", "production"]),
    submit_pool=st.sampled_from(["", "main"]),
    tags=st.sampled_from([(), ("ssd",)]),
    required_tags=st.sampled_from([(), ("ssd",)]),
)
IDENTITIES = st.sampled_from(
    [
        {},
        {"pilot_type": "private", "owner": "alice", "owner_groups": ("",)},
        {"pilot_type": "private", "owner": "", "owner_groups": ("physics",)},
    ]
)
LIMITS = st.sampled_from([(), (JobKind("User"),), (JobKind("", "physics"), JobKind("User", ""))])


@given(st.lists(NEEDS, max_size=8), OFFERS, IDENTITIES, LIMITS)
def test_a_queue_is_for_exactly_the_jobs_that_it_does_not_refuse(
    several: list[Needs],
    offer: Resource,
    identity: dict[str, object],
    at_limit: tuple[JobKind, ...],
) -> None:
    offer = replace(offer, excluded=at_limit, **identity)  # type: ignore[arg-type]
    demands = [Demand(number, needs, 10) for number, needs in enumerate(several)]

    unserved = Unserved.by(offer, Kinds(demands))

    taken = [each.needs for some in unserved.by_size.values() for each in some]
    expected = [needs for needs in several if not offer_refusal(offer, needs)]
    assert Counter(taken) == Counter(expected)
    assert unserved.count() == 10 * len(expected)


def test_what_is_served_by_one_queue_is_not_there_for_the_next() -> None:
    kinds = Kinds([Demand(1, Needs.of("alice"), 5), Demand(2, Needs.of("bob"), 5)])
    first = Unserved.by(Resource("a", 500), kinds)

    first.put_into(Counter({Room(7, time_s=600): 1}))

    assert first.sizes() == {Room(1, time_s=500): 3}
    assert Unserved.by(Resource("b", 500), kinds).count() == 3
