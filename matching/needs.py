"""What a job needs of the place where it runs; jobs with equal needs share a TaskQueue."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: Upper ends of the CPU time segments in seconds (DIRAC TaskQueue matching, 2009).
CPU_SEGMENTS_S = (500, 5_000, 50_000, 300_000)


def cpu_segment(cpu_time_s: float, segments_s: tuple[int, ...] = CPU_SEGMENTS_S) -> int:
    """The smallest segment that holds `cpu_time_s`; a longer time is cut to the last segment."""
    return next((end for end in segments_s if cpu_time_s <= end), segments_s[-1])


def _words(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({value.strip() for value in values if value.strip()}))


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a job. An empty list of sites, platforms or tags means no such need."""

    owner: str
    owner_group: str = ""
    cpu_time_s: int = CPU_SEGMENTS_S[0]
    cores: int = 1
    memory_mb: int = 0
    sites: tuple[str, ...] = ()
    banned_sites: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        owner: str,
        *,
        owner_group: str = "",
        cpu_time_s: float = CPU_SEGMENTS_S[0],
        cores: int = 1,
        memory_mb: int = 0,
        sites: Iterable[str] = (),
        banned_sites: Iterable[str] = (),
        platforms: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> Needs:
        """Normalised needs: lists sorted without repetition, CPU time rounded up to its segment.

        Raises ValueError, with the field's name, for a contradiction or an absurd number.
        """
        if cores < 1 or memory_mb < 0 or cpu_time_s < 0:
            raise ValueError("cores must be at least 1, memory_mb and cpu_time_s not negative")
        wanted, banned = _words(sites), _words(banned_sites)
        if wanted and not set(wanted) - set(banned):
            raise ValueError("sites and banned_sites contradict each other: no site is left")
        return cls(
            owner=owner,
            owner_group=owner_group,
            cpu_time_s=cpu_segment(cpu_time_s),
            cores=cores,
            memory_mb=memory_mb,
            sites=wanted,
            banned_sites=banned,
            platforms=_words(platforms),
            tags=_words(tags),
        )

    def as_dict(self) -> dict[str, Any]:
        """The needs as JSON values, in a fixed order."""
        return {
            "owner": self.owner,
            "owner_group": self.owner_group,
            "cpu_time_s": self.cpu_time_s,
            "cores": self.cores,
            "memory_mb": self.memory_mb,
            "sites": list(self.sites),
            "banned_sites": list(self.banned_sites),
            "platforms": list(self.platforms),
            "tags": list(self.tags),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Needs:
        """The needs that `as_dict` described."""
        return cls.of(**values)

    def key(self) -> str:
        """SHA-256 of the canonical form: equal exactly for equal needs."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Resource:
    """What a pilot, or a site's queue, offers to jobs."""

    site: str
    cpu_time_s: int
    cores: int = 1
    memory_mb: int = 0
    platform: str = ""
    tags: tuple[str, ...] = ()

    def refusal(self, needs: Needs) -> str:
        """Why these needs cannot be met here, or an empty string when they can."""
        if needs.cpu_time_s > self.cpu_time_s:
            return f"needs {needs.cpu_time_s} s of CPU time, offered are {self.cpu_time_s} s"
        if needs.cores > self.cores:
            return f"needs {needs.cores} cores, offered are {self.cores}"
        if needs.memory_mb > self.memory_mb:
            return f"needs {needs.memory_mb} MB of memory, offered are {self.memory_mb} MB"
        if needs.sites and self.site not in needs.sites:
            return f"may run at {', '.join(needs.sites)} only"
        if self.site in needs.banned_sites:
            return f"may not run at {self.site}"
        if needs.platforms and self.platform not in needs.platforms:
            return (
                f"needs platform {' or '.join(needs.platforms)}, here is {self.platform or 'none'}"
            )
        missing = set(needs.tags) - set(self.tags)
        if missing:
            return f"needs the tags {', '.join(sorted(missing))}"
        return ""
