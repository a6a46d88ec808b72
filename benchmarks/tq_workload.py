"""Workload of the claim benchmark: TaskQueues, jobs and pilots, the same ones in every run.

They are like those of a large collaboration. Every draw goes through
`random.Random(text).random()`, which gives the same numbers in every version of Python. A few
production groups share their pools, many users have small ones; the sites' weights fall like
1/rank; jobs come in bursts. `matches` is the rule that a claim must keep.

A requirement has the keys Owner, OwnerGroup, CPUTime (s), and, where it asks for them, Sites,
BannedSites, Platforms, GridCEs, JobTypes, Tags (sorted lists) and MinRAM (MB). A pilot has kind,
Site, GridCE, Platform, CPUTime (s), MaxRAM (MB), NumberOfProcessors, OwnerGroup (a list: generic),
Owner (private ones), Tag, and may have RequiredTag and BannedJobTypes.
"""

from __future__ import annotations

import bisect
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Requirement = dict[str, Any]
Pilot = dict[str, Any]

CPU_SEGMENTS_S = [
    360, 1800, 3600, 21600, 43200, 86400, 172800, 259200, 345600, 518400, 691200, 864000, 1080000,
]  # fmt: skip
_CPU_WEIGHTS = [0.02, 0.04, 0.06, 0.13, 0.14, 0.22, 0.14, 0.08, 0.06, 0.05, 0.03, 0.02, 0.01]
_PRIORITIES = list(range(11))
_PRIORITY_WEIGHTS = [0.03, 0.50, 0.08, 0.08, 0.05, 0.12, 0.03, 0.03, 0.04, 0.02, 0.02]
_PLATFORMS = [
    "x86_64-el7", "x86_64-el8", "x86_64-el9", "x86_64-el9-avx512", "aarch64-el9", "x86_64-any",
]  # fmt: skip
_PLATFORM_WEIGHTS = [0.08, 0.17, 0.50, 0.15, 0.05, 0.05]
_USER_JOB_TYPES = ["User", "UserTest"]
_PROD_JOB_TYPES = {
    "prod_mc": ["MCSimulation", "MCReconstruction"],
    "prod_reco": ["DataReconstruction", "DataStripping"],
    "prod_merge": ["Merge", "MCMerge"],
    "prod_val": ["Validation"],
}
_PROD_SHARES = (("prod_mc", 6000), ("prod_reco", 4000), ("prod_merge", 2000), ("prod_val", 1000))
_SEED = 20090216
_MAX_JOBS_PER_TASK_QUEUE = 5000
_SITES = 120
_USER_GROUPS = 8
_OWNERS_PER_USER_GROUP = 50
_OWNERS_PER_PROD_GROUP = 3
_KINDS = [
    "generic_1core", "generic_8core", "mcore_only", "short", "gpu_only", "private", "limited",
    "nomatch",
]  # fmt: skip
_MIX = [0.55, 0.20, 0.05, 0.08, 0.02, 0.02, 0.07, 0.01]


class _Rng:
    """Draws from one stream, named by its key."""

    def __init__(self, *key: object) -> None:
        self._random = random.Random("/".join(str(part) for part in key))

    def u(self) -> float:
        return self._random.random()

    def below(self, n: int) -> int:
        return int(self._random.random() * n)

    def chance(self, p: float) -> bool:
        return self._random.random() < p

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[Any], cumulative: Sequence[float]) -> Any:
        at = bisect.bisect_right(cumulative, self._random.random() * cumulative[-1])
        return items[min(at, len(items) - 1)]

    def sample(self, items: Sequence[Any], k: int) -> list[Any]:
        pool = list(items)
        for i in range(k):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:k]

    def shuffle(self, items: list[Any]) -> None:
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


def _cumulated(weights: Sequence[float]) -> list[float]:
    sums, total = [], 0.0
    for weight in weights:
        total += weight
        sums.append(total)
    return sums


def _zipf(n: int, exponent: float = 1.0) -> list[float]:
    return [1.0 / (i + 1) ** exponent for i in range(n)]


class Workload:
    """So many jobs in so many TaskQueues, the groups that own them, and the sites' pilots."""

    def __init__(self, jobs: int, task_queues: int) -> None:
        self._jobs = jobs
        self.groups = _groups()
        self.sites = _sites()
        self._site_sums = _cumulated([site["weight"] for site in self.sites])
        self._prod = [name for name, group in self.groups.items() if group["job_sharing"]]
        self._user = [name for name, group in self.groups.items() if not group["job_sharing"]]
        self.task_queues = self._task_queues(task_queues)
        self.jobs_per_task_queue = self._counts()

    def job_rows(self) -> Iterator[tuple[int, int, int, int]]:
        """Job id, index of its TaskQueue, priority, CPU time, in the order of submission."""
        rng = _Rng(_SEED, "jobs")
        bursts = []
        for index, count in enumerate(self.jobs_per_task_queue):
            left = count
            while left > 0:
                burst = min(left, 1 + rng.below(50))
                bursts.append((index, burst))
                left -= burst
        rng.shuffle(bursts)
        sums = _cumulated(_PRIORITY_WEIGHTS)
        fixed = []
        for _ in self.task_queues:
            priority = rng.weighted(_PRIORITIES, sums)
            fixed.append(priority if rng.chance(0.60) else None)
        lower = dict(zip(CPU_SEGMENTS_S, [0, *CPU_SEGMENTS_S[:-1]], strict=True))
        job_id = 0
        for index, burst in bursts:
            top = self.task_queues[index]["CPUTime"]
            for _ in range(burst):
                job_id += 1
                own = fixed[index]
                priority = rng.weighted(_PRIORITIES, sums) if own is None else own
                yield job_id, index, priority, lower[top] + 1 + rng.below(top - lower[top])

    def mixed_pilots(self, count: int, stream: str) -> Iterator[Pilot]:
        """Pilots that ask for work, of all kinds in the proportions of production."""
        rng = _Rng(_SEED, "mix", stream)
        sums = _cumulated(_MIX)
        for _ in range(count):
            yield self._pilot(rng, rng.weighted(_KINDS, sums))

    def _pilot(self, rng: _Rng, kind: str) -> Pilot:
        site = rng.weighted(self.sites, self._site_sums)
        cores = 8 if kind in {"generic_8core", "mcore_only", "gpu_only"} else 1
        pilot = {
            "kind": kind,
            "Site": site["name"],
            "GridCE": rng.pick(site["ces"]),
            "Platform": site["platform"],
            "CPUTime": int(site["cpu_limit"] * (0.7 + 0.3 * rng.u())),
            "MaxRAM": site["ram"] * cores,
            "NumberOfProcessors": cores,
            "OwnerGroup": sorted(self.groups),
            "Tag": [f"{i}Processors" for i in range(1, cores + 1)],
        }
        if cores > 1:
            pilot["Tag"].append("MultiProcessor")
        special = _SPECIAL.get(kind)
        if special is not None:
            special(self, rng, pilot)
        return pilot

    def _mcore_only(self, rng: _Rng, pilot: Pilot) -> None:
        pilot["RequiredTag"] = ["MultiProcessor"]

    def _short(self, rng: _Rng, pilot: Pilot) -> None:
        pilot["CPUTime"] = 1800 + rng.below(5400)

    def _gpu_only(self, rng: _Rng, pilot: Pilot) -> None:
        pilot["Tag"].append("GPU")
        pilot["RequiredTag"] = ["GPU"]

    def _private(self, rng: _Rng, pilot: Pilot) -> None:
        pilot["OwnerGroup"] = rng.weighted(self._user, _cumulated(_zipf(len(self._user), 0.7)))
        owners = self.groups[pilot["OwnerGroup"]]["owners"]
        pilot["Owner"] = rng.weighted(owners, _cumulated(_zipf(len(owners), 0.8)))

    def _limited(self, rng: _Rng, pilot: Pilot) -> None:
        types = sorted(each for types in _PROD_JOB_TYPES.values() for each in types)
        pilot["BannedJobTypes"] = sorted(rng.sample(types, 2 + rng.below(3)))

    def _nomatch(self, rng: _Rng, pilot: Pilot) -> None:
        pilot["CPUTime"] = 60

    def _task_queues(self, count: int) -> list[Requirement]:
        rng = _Rng(_SEED, "tqs")
        seen: set[str] = set()
        found: list[Requirement] = []
        while len(found) < count:
            requirement = self._requirement(rng)
            key = json.dumps(requirement, sort_keys=True)
            if key not in seen:
                seen.add(key)
                found.append(requirement)
        return found

    def _requirement(self, rng: _Rng) -> Requirement:
        is_prod = rng.chance(0.30)
        if is_prod:
            group = rng.weighted(self._prod, _cumulated([0.45, 0.30, 0.15, 0.10]))
        else:
            group = rng.weighted(self._user, _cumulated(_zipf(len(self._user), 0.7)))
        owners = self.groups[group]["owners"]
        by_rank = _cumulated(_zipf(_OWNERS_PER_USER_GROUP, 0.8))
        owner = rng.pick(owners) if is_prod else rng.weighted(owners, by_rank)
        segment = rng.weighted(CPU_SEGMENTS_S, _cumulated(_CPU_WEIGHTS))
        found: Requirement = {"Owner": owner, "OwnerGroup": group, "CPUTime": segment}
        self._ask_for_a_place(rng, found)
        if is_prod:
            found["JobTypes"] = [rng.pick(_PROD_JOB_TYPES[group])]
        else:
            found["JobTypes"] = [_USER_JOB_TYPES[0 if rng.chance(0.95) else 1]]
        _ask_for_a_node(rng, found)
        return found

    def _ask_for_a_place(self, rng: _Rng, found: Requirement) -> None:
        """40 % go anywhere, 30 % to one site, 22 % to two to eight, 8 % to ten to sixty."""
        u = rng.u()
        if u >= 0.92:
            found["Sites"] = self._some_sites(rng, 10 + rng.below(51))
        elif u >= 0.70:
            found["Sites"] = self._some_sites(rng, 2 + rng.below(7))
        elif u >= 0.40:
            found["Sites"] = self._some_sites(rng, 1)
        if rng.chance(0.25):
            some = self._some_sites(rng, 1 + rng.below(5))
            banned = [site for site in some if site not in found.get("Sites", ())]
            if banned:
                found["BannedSites"] = banned
        self._ask_for_a_kind_of_place(rng, found)

    def _ask_for_a_kind_of_place(self, rng: _Rng, found: Requirement) -> None:
        """Half of them need certain platforms, 3 % certain queues of a site."""
        u = rng.u()
        if u >= 0.80:
            found["Platforms"] = sorted(rng.sample(_PLATFORMS, 2 + rng.below(2)))
        elif u >= 0.50:
            found["Platforms"] = [rng.weighted(_PLATFORMS, _cumulated(_PLATFORM_WEIGHTS))]
        if rng.chance(0.03):
            site = rng.weighted(self.sites, self._site_sums)
            some = rng.sample(site["ces"], min(len(site["ces"]), 1 + rng.below(2)))
            found["GridCEs"] = sorted(some)

    def _some_sites(self, rng: _Rng, count: int) -> list[str]:
        """So many different sites, large ones more likely."""
        names = [site["name"] for site in self.sites]
        chosen: set[str] = set()
        while len(chosen) < count:
            chosen.add(rng.weighted(names, self._site_sums))
        return sorted(chosen)

    def _counts(self) -> list[int]:
        """Jobs per TaskQueue: 30 % hold one to five, the others at least six, by Pareto weights."""
        rng = _Rng(_SEED, "counts")
        cap = min(_MAX_JOBS_PER_TASK_QUEUE, self._jobs)
        counts, weights = [], []
        for _ in self.task_queues:
            is_small, few = rng.chance(0.30), 1 + rng.below(5)
            weight = (1.0 - rng.u()) ** (-1.0 / 1.1)
            counts.append(few if is_small else 6)
            weights.append(0.0 if is_small else weight)
        _spread(self._jobs - sum(counts), counts, weights, cap)
        return counts


_SPECIAL: dict[str, Callable[[Workload, _Rng, Pilot], None]] = {
    "mcore_only": Workload._mcore_only,
    "short": Workload._short,
    "gpu_only": Workload._gpu_only,
    "private": Workload._private,
    "limited": Workload._limited,
    "nomatch": Workload._nomatch,
}


def _groups() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, share in _PROD_SHARES:
        owners = [f"{name}_mgr{i}" for i in range(_OWNERS_PER_PROD_GROUP)]
        found[name] = {"share": share, "job_sharing": True, "owners": owners}
    for number in range(_USER_GROUPS):
        owners = [f"u{number}_{i:03d}" for i in range(_OWNERS_PER_USER_GROUP)]
        name = f"user_{chr(97 + number)}"
        found[name] = {"share": 1000, "job_sharing": False, "owners": owners}
    return found


def _sites() -> list[dict[str, Any]]:
    rng = _Rng(_SEED, "sites")
    found = []
    for number, weight in enumerate(_zipf(_SITES)):
        ces = 1 + rng.below(4)
        found.append(
            {
                "name": f"GRID.Site{number:03d}.zz",
                "weight": weight,
                "ces": [f"ce{ce + 1}.site{number:03d}.example" for ce in range(ces)],
                "platform": rng.weighted(_PLATFORMS, _cumulated(_PLATFORM_WEIGHTS)),
                "cpu_limit": rng.weighted(
                    [86400, 172800, 259200, 345600, 432000],
                    _cumulated([0.15, 0.35, 0.30, 0.12, 0.08]),
                ),
                "ram": rng.pick([2000, 2000, 2500, 3000, 4000]),
                "cores": rng.pick([1, 8, 8, 8, 16, 32]),
            }
        )
    return found


def _ask_for_a_node(rng: _Rng, found: Requirement) -> None:
    """15 % are multi-core, 1 % take the whole node, 2 % a GPU, 20 % name an amount of memory."""
    tags: set[str] = set()
    u = rng.u()
    if u < 0.15:
        tags.add("MultiProcessor")
        cores = rng.pick([0, 2, 4, 8, 8, 8])
        if cores:
            tags.add(f"{cores}Processors")
    elif u < 0.16:
        tags.update(("WholeNode", "MultiProcessor"))
    if rng.chance(0.02):
        tags.add("GPU")
    if tags:
        found["Tags"] = sorted(tags)
    if rng.chance(0.20):
        found["MinRAM"] = rng.pick([1000, 2000, 2000, 2500, 4000, 8000])


def _spread(todo: int, counts: list[int], weights: list[float], cap: int) -> None:
    """Add `todo` jobs in proportion to the weights; no count grows beyond `cap`."""
    free = [i for i, weight in enumerate(weights) if weight]
    while todo > 0:
        total = sum(weights[i] for i in free)
        gave = 0
        for i, part in [(i, todo * weights[i] / total) for i in free]:
            more = min(int(part), cap - counts[i])
            counts[i] += more
            gave += more
        todo -= gave
        free = [i for i in free if counts[i] < cap]
        if gave == 0:
            for i in sorted(free, key=lambda k: (-weights[k], k))[:todo]:
                counts[i] += 1
                todo -= 1


def matches(requirement: Requirement, pilot: Pilot, groups: Mapping[str, Any]) -> bool:
    """Whether this pilot may have a job with this requirement."""
    return (
        _is_owner_allowed(requirement, pilot, groups)
        and requirement["CPUTime"] <= pilot["CPUTime"]
        and pilot["Site"] not in requirement.get("BannedSites", ())
        and all(
            not requirement.get(wanted) or pilot[there] in requirement[wanted]
            for wanted, there in (
                ("Sites", "Site"),
                ("GridCEs", "GridCE"),
                ("Platforms", "Platform"),
            )
        )
        and set(requirement.get("Tags", ())) <= set(pilot["Tag"])
        and set(pilot.get("RequiredTag", ())) <= set(requirement.get("Tags", ()))
        and requirement.get("MinRAM", 0) <= pilot["MaxRAM"]
        and not set(requirement["JobTypes"]) <= set(pilot.get("BannedJobTypes", ()))
    )


def _is_owner_allowed(requirement: Requirement, pilot: Pilot, groups: Mapping[str, Any]) -> bool:
    allowed = pilot["OwnerGroup"]
    if requirement["OwnerGroup"] not in ([allowed] if isinstance(allowed, str) else allowed):
        return False
    is_shared = groups[requirement["OwnerGroup"]]["job_sharing"]
    return "Owner" not in pilot or is_shared or requirement["Owner"] == pilot["Owner"]
