"""Simulation of the example's DAGs: each is played from its submission until now, node by node.

`play_all` returns them with the states of their nodes and the times and outcomes of their jobs; it
writes nothing. What state a node is in follows from when its jobs ended; what state a DAG is in,
from its nodes.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from examples.load.scale import Scale

_HOUR_S = 3600.0
_DAY_S = 24 * _HOUR_S
#: No attempt takes longer; pilots live longer than that.
_LONGEST_RUN_S = 12 * _HOUR_S
STAGES = ("gen", "sim", "digi", "reco", "merge")
WAITING, READY, SUBMITTED, DONE, FAILED, FUTILE = range(6)
STATES = ("waiting", "ready", "submitted", "done", "failed", "futile")
#: Of DAGs that never began: those are idle, or a person has held or removed them.
_BEFORE = ("idle", "idle", "idle", "held", "held", "removed")


class Life(NamedTuple):
    """One job: when it was made, started and ended, as far as it has come by now.

    `outcome` is done, failed, or the state that it is in. `is_lost`: its first attempt was lost.
    """

    made_s: float
    flow: int
    place: int
    started_s: float | None
    ended_s: float | None
    outcome: str
    is_lost: bool


@dataclass
class Flow:
    """A DAG: `levels` layers of `width` nodes, each with two parents in the layer above.

    `ends` are the times at which nodes ended, `job_ids` their latest jobs.
    """

    number: int
    owner: int
    site: int
    made_s: float
    levels: int
    width: int
    state: str
    states: bytearray = field(repr=False)
    retries: bytearray = field(repr=False)
    ends: array[float] = field(repr=False)
    job_ids: array[int] = field(repr=False)
    lives: list[Life] = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        """As in a production with many campaigns."""
        return f"campaign{self.number % 37:02d}-batch{self.number:04d}.dag"

    @property
    def nodes(self) -> int:
        """Number of them."""
        return self.levels * self.width

    def node_name(self, place: int) -> str:
        """The name of a node, which tells the stage of the production and its layer."""
        level, order = divmod(place, self.width)
        return f"{STAGES[level * len(STAGES) // self.levels]}_{level:03d}_{order:05d}"

    def parents(self, place: int) -> tuple[int, ...]:
        """The nodes above."""
        if place < self.width:
            return ()
        above = place - self.width
        beside = above - above % self.width + (above + 1) % self.width
        return (above,) if beside == above else (above, beside)

    def count(self, state: int) -> int:
        """Number of nodes in this state."""
        return self.states.count(state)

    @property
    def ended_s(self) -> float:
        """When its last node ended."""
        return max(self.ends)


@dataclass(frozen=True)
class _Habits:
    """Times that the jobs of a DAG wait and run, and the share of them that fails."""

    wait_s: float
    run_s: float
    fails: float


def play_all(
    scale: Scale, weights: Sequence[float], owners: int, draw: random.Random, now_s: float
) -> list[Flow]:
    """All DAGs in the order of their submission, with as many jobs together as wanted.

    They are played from the latest to the first, which was over long ago and takes the rest. Of
    sites those with more weight get more.
    """
    player = _Player(draw, now_s)
    left, flows = scale.jobs, []
    for number in reversed(range(scale.dags)):
        made_s = now_s - scale.seconds * (1 - (number + 0.2) / scale.dags) + _DAY_S / 2
        made_s = min(made_s, now_s - 90 * (scale.dags - number))
        flow = _shaped(
            scale, number, _size(scale, number, left, draw), made_s, draw,
            site=draw.choices(range(len(weights)), weights)[0],
            owner=min(int(draw.expovariate(0.35)), owners - 1),
        )  # fmt: skip
        player.play(flow, _habits(scale, flow, draw, now_s), must_end=number == 0)
        left -= len(flow.lives)
        flows.append(flow)
    return flows[::-1]


def _size(scale: Scale, number: int, left: int, draw: random.Random) -> int:
    """How many nodes; the first DAG takes what is left, and leaves enough for those before it."""
    if number == 0:
        return left
    if number == _large(scale):
        return scale.large
    still = scale.large if number > _large(scale) else 0
    mean = (left - still) / (number + 1)
    return max(1, min(int(draw.lognormvariate(0, 1) * mean / 1.6), (left - still - number) // 2))


def _large(scale: Scale) -> int:
    """Which DAG is the largest: one of the last tenth, that is under way."""
    return scale.dags - max(3, scale.dags // 12)


def _shaped(
    scale: Scale,
    number: int,
    size: int,
    made_s: float,
    draw: random.Random,
    *,
    site: int,
    owner: int,
) -> Flow:
    if number == _large(scale):
        levels = max(2, round(size**0.5 / 2.236))
    else:
        levels = 1 if number == 0 else min(size, draw.choice((1, 2, 3, 4, 5, 8)))
    width = max(1, size // levels)
    nodes = levels * width
    return Flow(
        number=number, owner=owner, site=site, made_s=made_s, levels=levels, width=width,
        state="", states=bytearray(nodes), retries=bytearray(nodes),
        ends=array("d", bytes(8 * nodes)), job_ids=array("q", bytes(8 * nodes)),
    )  # fmt: skip


def _habits(scale: Scale, flow: Flow, draw: random.Random, now_s: float) -> _Habits:
    """The latest DAGs wait long, since there are more of them than the sites can run."""
    if flow.number == _large(scale):
        # Three fifths of its layers are over.
        layer_s = max(60.0, (now_s - flow.made_s) / (0.6 * flow.levels))
        return _Habits(0.25 * layer_s, 0.2 * layer_s, 0.00002)
    fails = draw.choice((0.0, 0.0, 0.0, 0.002, 0.01, 0.12))
    is_late = now_s - flow.made_s < scale.seconds / 6
    wait_s = draw.uniform(0.5, 2) * (scale.seconds / 15 if is_late else 0.4 * _HOUR_S)
    return _Habits(wait_s, draw.uniform(0.5, 4) * _HOUR_S, fails)


class _Player:
    def __init__(self, draw: random.Random, now_s: float) -> None:
        self._draw, self._now_s = draw, now_s

    def play(self, flow: Flow, habits: _Habits, *, must_end: bool) -> None:
        """Fill in the states of the nodes and the lives of the jobs."""
        if must_end:
            habits = _Habits(600.0, _HOUR_S, 0.0)
        # Some of the last ones have found no site.
        elif self._now_s - flow.made_s < _DAY_S and self._draw.random() < 0.3:
            flow.state = self._draw.choice(_BEFORE)
            return
        for place in range(flow.nodes):
            self._play_node(flow, place, habits)
        flow.state = self._state_of(flow)

    def _state_of(self, flow: Flow) -> str:
        if flow.count(WAITING) or flow.count(SUBMITTED) or flow.count(READY):
            return "halted" if self._draw.random() < 0.04 else "running"
        return "failed" if flow.count(FAILED) else "completed"

    def _play_node(self, flow: Flow, place: int, habits: _Habits) -> None:
        above = [flow.states[parent] for parent in flow.parents(place)]
        if any(state in (FAILED, FUTILE) for state in above):
            flow.states[place] = FUTILE
            flow.ends[place] = max(flow.ends[parent] for parent in flow.parents(place))
        elif all(state == DONE for state in above):
            begins_s = max(
                (flow.ends[parent] for parent in flow.parents(place)), default=flow.made_s
            )
            self._run(flow, place, begins_s + 20 + 40 * self._draw.random(), habits)

    def _run(self, flow: Flow, place: int, made_s: float, habits: _Habits) -> None:
        """The jobs of a node: one, or two when it is retried."""
        if made_s >= self._now_s:
            flow.states[place] = READY
            return
        life = self._live(flow, place, made_s, habits, habits.fails)
        flow.lives.append(life)
        if life.outcome == "failed" and self._draw.random() < 0.8 and life.ended_s is not None:
            again_s = life.ended_s + 5
            if again_s < self._now_s:
                flow.retries[place] = 1
                life = self._live(flow, place, again_s, habits, 0.2)
                flow.lives.append(life)
        flow.states[place] = {"done": DONE, "failed": FAILED}.get(life.outcome, SUBMITTED)
        flow.ends[place] = life.ended_s or 0.0

    def _live(self, flow: Flow, place: int, made_s: float, habits: _Habits, fails: float) -> Life:
        draw, now_s = self._draw, self._now_s
        luck, is_lost = draw.random(), draw.random() < 0.015
        started_s = made_s + 2 + min(draw.expovariate(1 / habits.wait_s), 8 * habits.wait_s)
        if started_s >= now_s:
            is_lost = is_lost and now_s - made_s > _HOUR_S
            outcome = "received" if is_lost else "held" if luck < 0.02 else "waiting"
            return Life(made_s, flow.number, place, None, None, outcome, is_lost)
        ended_s = started_s + 5 + min(draw.expovariate(1 / habits.run_s), _LONGEST_RUN_S)
        if ended_s >= now_s:
            outcome = (
                "matched" if now_s - started_s < 20 else "stalled" if luck < 0.01 else "running"
            )
            return Life(made_s, flow.number, place, started_s, None, outcome, is_lost)
        outcome = "failed" if luck < fails else "done"
        return Life(made_s, flow.number, place, started_s, ended_s, outcome, is_lost)


def in_order(flows: list[Flow]) -> list[Life]:
    """The jobs of all DAGs in the order in which they were made."""
    return sorted(life for flow in flows for life in flow.lives)


def totals(flow: Flow) -> Iterator[tuple[str, int]]:
    """The counters of a DAG as its row has them."""
    for state in (DONE, FAILED, FUTILE, SUBMITTED, READY):
        yield f"{STATES[state]}_count", flow.count(state)
