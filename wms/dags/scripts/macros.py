"""Macros in the arguments of scripts, expanded when the run is requested.

A macro is a whole argument, in any case: `x$JOB` stays as it is, and so does an unknown one.
Source: Script::BackgroundRun (HTCondor, condor_dagman/script.cpp).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

#: Those for which all jobs of the node must be looked at.
_OF_ALL_JOBS = frozenset(
    {"JOB_COUNT", "JOB_ABORT_COUNT", "EXIT_CODES", "EXIT_CODE_LIST", "EXIT_CODE_COUNTS"}
)


@dataclass(frozen=True, slots=True)
class JobEnds:
    """Exit codes of the jobs of a cluster, and the number of jobs without one."""

    count: int = 0
    aborted: int = 0
    codes: tuple[int, ...] = ()

    def values(self) -> dict[str, str]:
        """Values of the macros about the jobs."""
        by_code = sorted(Counter(self.codes).items())
        return {
            "JOB_COUNT": str(self.count),
            "JOB_ABORT_COUNT": str(self.aborted),
            "EXIT_CODES": ",".join(str(code) for code, _ in by_code),
            "EXIT_CODE_LIST": ",".join(map(str, self.codes)),
            "EXIT_CODE_COUNTS": ",".join(f"{code}:{number}" for code, number in by_code),
        }


def expand_arguments(
    arguments: Sequence[str], values: Mapping[str, str], job_ends: Callable[[], JobEnds]
) -> list[str]:
    """Arguments with their macros expanded; `job_ends` is called only if a macro needs it."""
    names = {argument[1:].upper() for argument in arguments if argument.startswith("$")}
    known = dict(values)
    if names & _OF_ALL_JOBS:
        known.update(job_ends().values())
    return [
        known.get(argument[1:].upper(), argument) if argument.startswith("$") else argument
        for argument in arguments
    ]
