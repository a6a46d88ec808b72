"""Shares of jobs, levels and ceilings: what holds for all numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.pressure.capacity import ResourceVector
from matching.pressure.formulas import FrontendLimits, Slots, exact_share, max_run, min_idle
from matching.pressure.job_division import JobGroup, Need, QueueOffer, share_out
from matching.pressure.plan import Bounds, QueueState, Scopes, plan
from matching.pressure.simulation import closed_loop

NAMES = ("a", "b", "c", "d")
CAPACITIES = st.builds(
    ResourceVector, st.integers(1, 8), st.integers(0, 9), st.integers(0, 1), st.integers(1, 2)
)
WEIGHTS = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 50), min_size=1)
GROUPS = st.lists(
    st.builds(
        JobGroup,
        size=CAPACITIES,
        jobs=st.integers(1, 200),
        queues=st.sets(st.sampled_from(NAMES), min_size=1).map(lambda some: tuple(sorted(some))),
        old_jobs=st.integers(0, 200),
        priority=st.floats(0, 10),
    ),
    max_size=8,
)
OFFERS = st.fixed_dictionaries(
    {
        name: st.builds(
            QueueOffer,
            fresh=st.builds(ResourceVector, st.integers(1, 8), st.just(9), st.just(1), st.just(2)),
            places=st.integers(-5, 30),
            max_pilots=st.integers(0, 30),
            waiting=st.integers(0, 5000),
            started=st.integers(0, 10),
            idle=st.dictionaries(CAPACITIES, st.integers(1, 5), max_size=3).map(Counter),
        )
        for name in NAMES
    }
)


@given(st.integers(0, 10_000), WEIGHTS)
def test_a_share_is_exact_and_nobody_is_a_whole_job_away_from_the_proportion(jobs, weights) -> None:
    answer = exact_share(jobs, weights)

    total = sum(weights.values())
    assert sum(answer.share.values()) + answer.unplaced == jobs
    assert answer.unplaced == (0 if total else jobs)
    for name, weight in weights.items():
        assert not total or abs(answer.share[name] - jobs * weight / total) < 1


def test_jobs_are_shared_to_the_end_where_only_queues_without_any_starts_have_places() -> None:
    # A thousand pilots wait, and none has started lately: its rate is less than a thousandth.
    stuck = QueueOffer(ResourceVector(1), places=5000, max_pilots=9000, waiting=4000)

    assert stuck.start_rate > 0
    assert (
        share_out([JobGroup(ResourceVector(1), 100, ("a",))], {"a": stuck})["a"].total_jobs == 100
    )


@given(st.integers(0, 10_000), WEIGHTS)
def test_whole_and_broken_weights_share_alike(jobs, weights) -> None:
    broken = {name: weight / 4 for name, weight in weights.items()}

    assert exact_share(jobs, broken).share == exact_share(jobs, weights).share


@pytest.mark.slow
@given(GROUPS, OFFERS)
def test_each_job_is_shared_out_once_and_only_where_it_fits(groups, offers) -> None:
    needs = share_out(groups, offers)

    for size in {group.size for group in groups}:
        of_size = [group for group in groups if group.size == size]
        assert sum(need.jobs[size] for need in needs.values()) == sum(g.jobs for g in of_size)
        fitting = {name for group in of_size for name in group.queues}
        assert all(not needs[name].jobs[size] for name in NAMES if name not in fitting)
    old = sum(min(group.old_jobs, group.jobs) for group in groups)
    assert sum(need.old_jobs for need in needs.values()) == old
    assert all(need.old_pilots <= need.pilots <= need.total_jobs for need in needs.values())


def test_free_places_and_start_rate_decide_the_share() -> None:
    fresh = ResourceVector(1, time_s=1)
    offers = {
        "large": QueueOffer(fresh, places=30, max_pilots=30),
        "small": QueueOffer(fresh, places=10, max_pilots=10),
        "stuck": QueueOffer(fresh, places=30, max_pilots=80, waiting=49),
        "full": QueueOffer(fresh, places=0, max_pilots=500),
    }
    group = JobGroup(ResourceVector(1, time_s=1), 40, tuple(sorted(offers)))

    needs = share_out([group], offers)

    shares = {name: need.total_jobs for name, need in needs.items()}
    assert shares == {"large": 29, "small": 10, "stuck": 1, "full": 0}


def test_what_exceeds_all_places_is_wanted_all_the_same() -> None:
    fresh = ResourceVector(1, time_s=1)
    offers = {
        "a": QueueOffer(fresh, places=10, max_pilots=10),
        "b": QueueOffer(fresh, places=30, max_pilots=30),
    }

    needs = share_out([JobGroup(ResourceVector(1, time_s=1), 440, ("a", "b"))], offers)

    assert {name: need.pilots for name, need in needs.items()} == {"a": 110, "b": 330}


def test_idle_rooms_that_can_take_no_waiting_job_do_not_count() -> None:
    offer = QueueOffer(
        ResourceVector(8, 8000, time_s=900),
        places=100,
        max_pilots=100,
        idle=Counter(
            {
                ResourceVector(8, 100, time_s=900): 50,
                ResourceVector(8, 8000, time_s=100): 50,
                ResourceVector(1, 2000, time_s=900): 3,
            }
        ),
    )
    size = ResourceVector(1, 1000, time_s=500)

    need = share_out([JobGroup(size, 19, ("a",))], {"a": offer})["a"]

    assert (need.usable, need.pilots) == (3, 2)


@given(
    st.integers(0, 500), st.integers(0, 500), st.integers(0, 120), st.integers(0, 30),
    st.integers(1, 60), st.integers(0, 90),
)  # fmt: skip
def test_a_level_never_exceeds_the_need_nor_a_place_that_a_limit_leaves(
    need, old, total, idle, most_waiting, site_total
) -> None:
    limits = replace(
        FrontendLimits(),
        max_running_per_entry=100,
        max_idle_glideins_per_entry=most_waiting,
        frontend_max_total=80,
    )

    level = min_idle(
        effective_idle=need,
        effective_old_idle=min(old, need),
        entry=Slots(total, idle),
        frontend=Slots(site_total, idle),
        limits=limits,
    ).min_idle

    assert 0 <= level <= most_waiting
    assert level <= max(need, 0)
    assert total + level <= 100 or level == 0
    assert site_total + level <= 80 or level == 0


def test_decimal_factors_are_exact() -> None:
    assert max_run(share_idle_mc=100, glideins_running_jobs=0) == 116


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 6), st.integers(0, 20))
def test_pressure_is_bounded_by_the_jobs_and_ends_when_they_vanish(
    jobs, starts, attenuation, vanish
) -> None:
    course = closed_loop(
        jobs=jobs, starts_per_cycle=starts, attenuation=attenuation, jobs_removed_at=vanish,
        max_cycles=400,
    )  # fmt: skip

    assert course.total_submitted <= jobs * 1.15 + 1
    assert not any(course.submitted[vanish:])


STATES = st.lists(
    st.builds(
        QueueState,
        name=st.just(""),
        need=st.builds(
            lambda pilots, usable: Need(
                jobs=Counter({ResourceVector(1): pilots + usable}), pilots=pilots, usable=usable
            ),
            st.integers(0, 60),
            st.integers(0, 5),
        ),
        queued=st.integers(0, 20),
        running=st.integers(0, 20),
        cores=st.integers(1, 8),
        max_pilots=st.integers(0, 60),
        max_queued=st.integers(0, 60),
        attenuation=st.sampled_from([1.0, 3.0]),
        site=st.sampled_from(["x", "y"]),
        group=st.sampled_from(["", "g"]),
    ),
    max_size=6,
).map(lambda states: [replace(state, name=str(n)) for n, state in enumerate(states)])


@given(STATES, st.integers(0, 100), st.integers(0, 60), st.integers(0, 300))
def test_what_queues_are_promised_together_never_exceeds_what_they_share(
    states, whole, of_site, cores
) -> None:
    scopes = Scopes(
        Bounds("limit of all pilots", max_pilots=whole, max_cores=cores),
        sites={"x": Bounds("site limit", max_pilots=of_site)},
        groups={"g": Bounds("group limit", max_pilots=30)},
    )

    requests = plan(states, scopes)

    def more(state):
        request = requests[state.name]
        assert request.level <= max(state.queued, request.ceiling - state.running)
        assert request.level <= max(request.wanted, 0)
        assert not request.level or request.level <= state.max_queued or request.level == 1
        return max(request.ceiling - state.alive, 0) if request.level else 0

    for some, most in (
        (states, whole),
        ([s for s in states if s.site == "x"], of_site),
        ([s for s in states if s.group == "g"], 30),
    ):
        promised = sum(more(state) for state in some)
        assert promised <= max(most - sum(state.alive for state in some), 0)
    used = sum(state.alive * state.cores for state in states)
    assert sum(more(s) * s.cores for s in states) <= max(cores - used, 0)
    for state in states:
        request = requests[state.name]
        assert request.level >= request.wanted or request.reasons


identities = st.sampled_from([(0, 1), (0, 2), (7, 0)])


@given(
    st.lists(st.tuples(identities, st.integers(1, 40), st.booleans()), min_size=1, max_size=6),
    st.dictionaries(identities, st.integers(0, 5)),
    st.dictionaries(identities, st.integers(0, 5)),
)
def test_where_pilots_have_owners_each_job_counts_once_and_for_its_own(
    jobs: list[tuple[tuple[int, int], int, bool]],
    waiting: dict[tuple[int, int], int],
    idle: dict[tuple[int, int], int],
) -> None:
    one = ResourceVector(1, time_s=1)
    rooms = {identity: Counter({one: count}) for identity, count in idle.items() if count}
    owned = QueueOffer(one, places=20, max_pilots=50, waiting=sum(waiting.values()),
                       has_owners=True, waiting_of=waiting, idle_of=rooms)  # fmt: skip
    offers = {"owned": owned, "open": QueueOffer(one, places=10, max_pilots=10)}
    groups = [
        JobGroup(one, count, ("open", "owned") if may_run_openly else ("owned",), identity=whose)
        for whose, count, may_run_openly in jobs
    ]

    needs = share_out(groups, offers)

    assert sum(need.total_jobs for need in needs.values()) == sum(group.jobs for group in groups)
    own = needs["owned"].by_identity
    assert sum(each.jobs.total() for each in own.values()) == needs["owned"].total_jobs
    for identity, each in own.items():
        # Nobody else's room helps.
        assert each.pilots == max(0, each.jobs.total() - idle.get(identity, 0))
    assert needs["owned"].pilots == sum(each.pilots for each in own.values())
