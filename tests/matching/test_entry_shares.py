"""Places of a queue divided among frontends, one moment and over a simulated hour."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from matching.pressure.capacity import ResourceVector
from matching.pressure.entry_shares import Claimant, divide_places
from matching.pressure.job_division import Need
from matching.pressure.plan import plan
from matching.pressure.plan_values import QueueState, Scopes, SharedQueue

claimants = st.dictionaries(
    st.sampled_from("abcdef"),
    st.builds(
        Claimant,
        share=st.sampled_from([0.25, 1.0, 1.5, 2.0, 10.0]),
        held=st.integers(0, 30),
        more=st.integers(0, 30),
    ),
    max_size=6,
)


def one_by_one(places: int, asking: dict[str, Claimant]) -> dict[str, int]:
    """Each place to whom it raises least, as long as there is one."""
    total = {name: each.held for name, each in asking.items()}
    while sum(total.values()) < places:
        hungry = [name for name, each in asking.items() if total[name] < each.most]
        if not hungry:
            break
        chosen = min(hungry, key=lambda name: ((total[name] + 1) / asking[name].share, name))
        total[chosen] += 1
    return {name: total[name] - each.held for name, each in asking.items()}


@given(st.integers(0, 200), claimants)
def test_places_are_divided_as_if_given_one_by_one_to_whom_each_raises_least(
    places: int, asking: dict[str, Claimant]
) -> None:
    assert divide_places(places, asking) == one_by_one(places, asking)


def test_what_one_does_not_need_goes_to_the_others_by_their_shares() -> None:
    asking = {
        "a": Claimant(2.0, more=100),
        "b": Claimant(1.0, more=100),
        "c": Claimant(7.0, more=10),
    }

    assert divide_places(100, asking) == {"a": 60, "b": 30, "c": 10}


def test_who_has_more_than_the_share_gets_nothing_new_until_the_others_have_theirs() -> None:
    asking = {"a": Claimant(1.0, held=60, more=50), "b": Claimant(1.0, more=100)}

    assert divide_places(100, asking) == {"a": 0, "b": 40}


def _state(
    entry: str, frontend: str, share: float, *, queued: int, running: int, places: int
) -> QueueState:
    size = ResourceVector(1, 1000, 0, 3600)
    need = Need(pilots=5000, priority=1.0)
    need.jobs[size] = 5000
    return QueueState(
        name=f"{entry} for {frontend}",
        need=need,
        queued=queued,
        running=running,
        busy=running,
        max_pilots=places,
        max_queued=places // 4,
        shared=entry,
        share=share,
    )


@pytest.mark.parametrize("late_s", [0, 1200])
def test_over_an_hour_each_frontend_gets_its_share_of_three_entries(late_s: int) -> None:
    """Both always have jobs; one of them may come late, when the other fills the entries."""
    places = {"slurm": 120, "condor": 90, "ssh": 30}
    shares = {"atlas": 2.0, "lsst": 1.0}
    scopes = Scopes(shared={name: SharedQueue(n, n // 4) for name, n in places.items()})
    queued = {(entry, who): 0 for entry in places for who in shares}
    ends: dict[tuple[str, str], deque[int]] = {key: deque() for key in queued}
    used_s = dict.fromkeys(shares, 0)
    cycle_s, life_s, hour_s = 10, 300, 3600
    for now_s in range(0, late_s + 2 * life_s + hour_s, cycle_s):
        for key, mine in ends.items():
            while mine and mine[0] <= now_s:
                mine.popleft()
            # The batch system starts some of those that wait, as far as there are places.
            starts = min(queued[key], 3)
            queued[key] -= starts
            mine.extend([now_s + life_s] * starts)
        here = [who for who in shares if who == "atlas" or now_s >= late_s]
        states = [
            _state(
                entry,
                who,
                shares[who],
                queued=queued[entry, who],
                running=len(ends[entry, who]),
                places=places[entry],
            )
            for entry in places
            for who in here
        ]
        for name, request in plan(states, scopes).items():
            entry, _, who = name.partition(" for ")
            alive = queued[entry, who] + len(ends[entry, who])
            new = min(request.level - queued[entry, who], request.ceiling - alive)
            queued[entry, who] += max(new, 0)
        for entry, most in places.items():
            assert sum(queued[entry, who] + len(ends[entry, who]) for who in shares) <= most
        if now_s >= late_s + 2 * life_s:
            for who in shares:
                used_s[who] += cycle_s * sum(len(ends[entry, who]) for entry in places)

    part = used_s["atlas"] / sum(used_s.values())
    assert part == pytest.approx(2 / 3, rel=0.05)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 1.0, 3.0]),
            st.integers(0, 30),
            st.integers(0, 10),
            st.integers(0, 20),
            st.integers(0, 20),
        ),
        min_size=2,
        max_size=4,
    ),
    st.integers(1, 60),
)
@example([(1.0, 1, 0, 1, 0), (1.0, 1, 0, 1, 0)], 1)
def test_ceilings_of_frontends_are_together_never_above_the_queue(
    several: list[tuple[float, int, int, int, int]], places: int
) -> None:
    size = ResourceVector(1, 1000, 0, 3600)
    states = []
    for number, (share, pilots, usable, queued, running) in enumerate(several):
        need = Need(pilots=pilots, usable=usable)
        need.jobs[size] = pilots + usable
        states.append(
            QueueState(
                name=str(number),
                need=need,
                queued=queued,
                running=running,
                busy=max(running - usable, 0),
                max_pilots=places if share else 0,
                max_queued=places if share else 0,
                shared="queue",
                share=share,
            )
        )

    requests = plan(states, Scopes(shared={"queue": SharedQueue(places, places)}))

    alive = sum(state.alive for state in states)
    assert sum(each.ceiling for each in requests.values()) <= max(places, alive)
    assert sum(requests[s.name].level for s in states if s.share) <= places
