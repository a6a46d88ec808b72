"""Values of the director's plan: bounds, entries with their pilots, and the requests planned.

An entry is a queue as one frontend sees it; most queues have one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from matching.pressure.job_division import Need

#: Stands for no limit.
UNBOUNDED = 10**9


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits and curbs on the pilots of several queues together; `name` precedes "limit"."""

    name: str
    max_pilots: int = UNBOUNDED
    curb_pilots: int = UNBOUNDED
    max_cores: int = UNBOUNDED
    max_idle: int = UNBOUNDED
    curb_idle: int = UNBOUNDED


@dataclass(frozen=True, slots=True)
class SharedQueue:
    """Places of a queue in which several frontends have pilots: in all, and for waiting ones."""

    max_pilots: int = UNBOUNDED
    max_queued: int = UNBOUNDED


@dataclass(frozen=True, slots=True)
class QueueState:
    """A queue, as one frontend sees it, with its pilots there that have not ended, and its limits.

    `queued` pilots have not called in, `held` of them are held; `running` ones have, `busy` of them
    have a job. `stranded` of the queued ones wait for somebody who needs none. `site`, `group` (of
    private pilots, or the frontend) and the whole name the bounds that apply, if there are any.
    `closed` is the reason why the queue is closed, or empty. `shared` names the queue where other
    frontends have pilots in it, too, which get their parts by `share`; 0: nothing new is sent.
    """

    name: str
    need: Need = field(default_factory=Need)
    closed: str = ""
    no_demand: str = "no job waits for it"
    queued: int = 0
    held: int = 0
    running: int = 0
    busy: int = 0
    stranded: int = 0
    cores: int = 1
    max_pilots: int = UNBOUNDED
    max_queued: int = UNBOUNDED
    max_idle: int = UNBOUNDED
    curb_idle: int = UNBOUNDED
    max_held: int = UNBOUNDED
    attenuation: float = 3.0
    site: str = ""
    group: str = ""
    shared: str = ""
    share: float = 1.0

    @property
    def alive(self) -> int:
        """All of its pilots."""
        return self.queued + self.running


@dataclass(frozen=True, slots=True)
class Request:
    """Request for a queue. `reasons` explain in order what reduced `wanted` to `level`."""

    wanted: int = 0
    level: int = 0
    ceiling: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scopes:
    """Bounds on all pilots, on those of sites and groups, and of shared queues, by name."""

    whole: Bounds = Bounds("limit of all pilots")
    sites: Mapping[str, Bounds] = field(default_factory=dict)
    groups: Mapping[str, Bounds] = field(default_factory=dict)
    shared: Mapping[str, SharedQueue] = field(default_factory=dict)
