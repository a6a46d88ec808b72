"""Random DAGs and spaces: no storage is ever exceeded, and all end that can."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from wms.placement.space_plans.ordering import Step, ordered
from wms.placement.space_plans.safety import Claim, Plan, fits, that_can_end


@st.composite
def _steps(draw) -> list[Step]:
    """Up to five allocations of two storages, most of them released, in any partial order."""
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 5))):
        storage, size = draw(st.integers(0, 1)), draw(st.integers(1, 4))
        earlier = draw(st.frozensets(st.sampled_from(range(len(steps))))) if steps else frozenset()
        steps.append(Step(storage, size, earlier))
        if draw(st.booleans()) or draw(st.booleans()):
            some = draw(st.frozensets(st.sampled_from(range(len(steps)))))
            steps.append(Step(storage, -size, some | {len(steps) - 1}))
    return steps


_SPACE = st.fixed_dictionaries({0: st.integers(1, 8), 1: st.integers(1, 8)})


def _has_order(steps: list[Step], space: dict[int, int]) -> bool:
    """By looking at every order there is."""

    @cache
    def from_here(done: frozenset[int]) -> bool:
        if len(done) == len(steps):
            return True
        for n, step in enumerate(steps):
            if n in done or not step.after <= done:
                continue
            used = sum(
                steps[each].taken_bytes for each in done if steps[each].storage == step.storage
            )
            if used + step.taken_bytes <= space[step.storage] and from_here(done | {n}):
                return True
        return False

    return from_here(frozenset())


@given(_steps(), _SPACE)
@settings(max_examples=100)
def test_an_order_is_found_where_there_is_one_and_exceeds_nothing(steps, space) -> None:
    found = ordered(steps, space)

    assert (found is not None) == _has_order(steps, space)
    if found is None:
        return
    assert sorted(found) == list(range(len(steps)))
    used = {0: 0, 1: 0}
    for place, n in enumerate(found):
        assert steps[n].after <= set(found[:place])
        used[steps[n].storage] += steps[n].taken_bytes
        assert used[steps[n].storage] <= space[steps[n].storage]


def _plan_of(dag: int, steps: list[Step], order: list[int]) -> Plan:
    """The plan of steps in an order; each release is of the allocation before it."""
    places = {n: place for place, n in enumerate(order)}
    claims = []
    for n, step in enumerate(steps):
        if step.taken_bytes > 0:
            follows = n + 1 < len(steps) and steps[n + 1].taken_bytes < 0
            gives = places[n + 1] if follows else None
            claims.append(Claim(str(n), step.storage, step.taken_bytes, places[n], gives))
    return Plan(dag, tuple(claims))


class _Run:
    """A DAG that runs: steps that are done, and the claims that are left of its plan."""

    def __init__(self, dag: int, steps: list[Step], order: list[int]) -> None:
        self.steps, self.done = steps, set[int]()
        self.plan = _plan_of(dag, steps, order)

    def next_steps(self) -> list[int]:
        return [n for n, s in enumerate(self.steps) if n not in self.done and s.after <= self.done]

    def after(self, n: int) -> Plan:
        if self.steps[n].taken_bytes > 0:
            return replace(self.plan, claims=tuple(
                replace(c, is_held=True) if c.name == str(n) else c for c in self.plan.claims
            ))  # fmt: skip
        left = tuple(c for c in self.plan.claims if c.name != str(n - 1))
        return replace(self.plan, claims=left)


@given(st.lists(_steps(), min_size=1, max_size=3), _SPACE, st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_dags_that_share_storages_all_end_and_never_exceed_them(graphs, space, chance) -> None:
    orders = [(steps, ordered(steps, space)) for steps in graphs]
    runs = [_Run(dag, s, order) for dag, (s, order) in enumerate(orders) if order is not None]
    free, alive = dict(space), list(runs)
    while alive:
        # Any step of any DAG that may come next, in the order of chance, as the service has it.
        tried = [(run, n) for run in alive for n in run.next_steps()]
        chance.shuffle(tried)
        for run, n in tried:
            step = run.steps[n]
            left = free | {step.storage: free[step.storage] - step.taken_bytes}
            made = run.after(n)
            plans = [made if each is run else each.plan for each in alive]
            if step.taken_bytes < 0 or (
                left[step.storage] >= 0 and len(that_can_end(plans, left)) == len(alive)
            ):
                run.plan, free = made, left
                run.done.add(n)
                break
        else:
            raise AssertionError("the DAGs wait for each other")
        for run in [each for each in alive if len(each.done) == len(each.steps)]:
            alive.remove(run)
            for claim in run.plan.claims:
                # The lease of what is never released is over some day.
                free[claim.storage] += claim.size_bytes

    assert free == space


def test_two_dags_that_each_need_the_half_of_the_other_go_one_after_the_other() -> None:
    claims = (Claim("a", 1, 50, 0, 3), Claim("b", 1, 50, 1, 2))
    held = replace(claims[0], is_held=True)
    first, second = Plan(1, (held, claims[1])), Plan(2, claims)

    assert that_can_end([first, second], {1: 50}) == {1, 2}
    assert that_can_end([first, Plan(2, (held, claims[1]))], {1: 0}) == set()
    assert not fits(second, {1: 99})


def test_a_wide_dag_is_put_in_order_without_looking_at_every_way() -> None:
    steps: list[Step] = []
    for _ in range(100):
        steps.append(Step(1, 60, frozenset()))
        steps.append(Step(1, 40, frozenset({len(steps) - 1})))
        steps.append(Step(1, -60, frozenset({len(steps) - 1})))
        steps.append(Step(1, -40, frozenset({len(steps) - 1})))

    assert ordered(steps, {1: 100}) is not None
    assert ordered(steps, {1: 99}) is None
