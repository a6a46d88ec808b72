"""Start expressions of frontends: which jobs their pilots at an entry are for.

MY is the entry, as a fresh pilot offers it; TARGET is what all jobs of a TaskQueue have in common.
Both are known before any pilot is sent, so that what sends one and what it draws agree. A
conjunction is decided part by part: a part that looks at the entry only, or at the jobs only, is
evaluated once for each of them, not for each pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import classad2

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, evaluate, parse_expression
from matching.ads.expressions import references, split_conjuncts
from matching.task_queues.needs import Needs
from matching.task_queues.resources import NEEDS_ATTRIBUTES, Resource, needs_ad, pilot_ad

#: Characters of an expression, and steps of its evaluation.
MOST_CHARACTERS = 4000
_MOST_STEPS = 16 * 1024
_ENTRY_ATTRIBUTES = tuple(pilot_ad(Resource(site="", cpu_time_s=0, platform="-"), {}))
_OF_ENTRY = frozenset(name.lower() for name in _ENTRY_ATTRIBUTES)
_OF_JOBS = frozenset(name.lower() for name in NEEDS_ATTRIBUTES)
#: Fields of needs by their attributes in lower case.
NEEDS_FIELDS = {
    "owner": "owner",
    "accountinggroup": "owner_group",
    "requestcpus": "cores",
    "requestmemory": "memory_mb",
    "requestgpus": "gpus",
    "cputime": "cpu_time_s",
    "jobtype": "job_type",
}


def check_start_expression(text: str) -> None:
    """Raise AdError with the fault of an expression, and its place where it has one."""
    if len(text) > MOST_CHARACTERS:
        raise AdError(f"is longer than {MOST_CHARACTERS} characters")
    parse_expression(text)
    check_cost({"Start": text}, most_steps=_MOST_STEPS)
    for reference in references(text):
        known = {"my": _OF_ENTRY, "target": _OF_JOBS}.get(reference.scope, _OF_ENTRY | _OF_JOBS)
        if reference.name not in known:
            raise AdError(_unknown(reference.scope, reference.name))


def _unknown(scope: str, name: str) -> str:
    if scope == "my":
        return f"MY.{name} is no attribute of an entry; there are {', '.join(_ENTRY_ATTRIBUTES)}"
    if scope == "target":
        return f"TARGET.{name} is no attribute of jobs; there are {', '.join(NEEDS_ATTRIBUTES)}"
    names = ", ".join((*_ENTRY_ATTRIBUTES, *NEEDS_ATTRIBUTES))
    return f"{name} is no attribute of an entry or of jobs; there are {names}"


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a conjunction, with the attributes of entries and of jobs that it looks at."""

    text: str
    of_entry: tuple[str, ...]
    of_jobs: tuple[str, ...]

    def accepts(self, entry: classad2.ClassAd, jobs: classad2.ClassAd) -> bool:
        """Whether the part is true."""
        return evaluate(parse_expression(self.text), entry, jobs) is True

    def values(self, needs: Needs) -> tuple[object, ...]:
        """Values of the needs that it looks at."""
        return tuple([getattr(needs, NEEDS_FIELDS[name]) for name in self.of_jobs])


@lru_cache(maxsize=4096)
def parts_of(text: str) -> tuple[Part, ...]:
    """Parts of an expression: it is true where each of them is."""
    return tuple(map(_part, split_conjuncts(text)))


def _part(text: str) -> Part:
    names = {reference.name for reference in references(text)}
    return Part(text, tuple(sorted(names & _OF_ENTRY)), tuple(sorted(names & _OF_JOBS)))


@dataclass(frozen=True)
class StartRule:
    """Start expressions at one entry, all of which have to be true; `offer` is a fresh pilot's."""

    texts: Sequence[str]
    offer: Resource

    @cached_property
    def _ad(self) -> classad2.ClassAd:
        return pilot_ad(self.offer, {})

    def refusing_part(self, needs: Needs) -> Part | None:
        """The part that is not true for jobs with these needs; None where they may start."""
        own = needs_ad(needs)
        return next((part for part in self._parts() if not part.accepts(self._ad, own)), None)

    def _parts(self) -> Iterable[Part]:
        return (part for text in self.texts for part in parts_of(text))
