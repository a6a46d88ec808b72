"""The macros in a script's arguments, filled in when the script is asked for.

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
    """How the jobs of a cluster ended: a code for each that has one, and how many did not."""

    count: int = 0
    aborted: int = 0
    codes: tuple[int, ...] = ()

    def values(self) -> dict[str, str]:
        """The macros that tell of them."""
        by_code = sorted(Counter(self.codes).items())
        return {
            "JOB_COUNT": str(self.count),
            "JOB_ABORT_COUNT": str(self.aborted),
            "EXIT_CODES": ",".join(str(code) for code, _ in by_code),
            "EXIT_CODE_LIST": ",".join(map(str, self.codes)),
            "EXIT_CODE_COUNTS": ",".join(f"{code}:{number}" for code, number in by_code),
        }


def filled_in(
    arguments: Sequence[str], values: Mapping[str, str], job_ends: Callable[[], JobEnds]
) -> list[str]:
    """The arguments with their macros replaced; `job_ends` is asked only if one needs it."""
    names = {argument[1:].upper() for argument in arguments if argument.startswith("$")}
    known = dict(values)
    if names & _OF_ALL_JOBS:
        known.update(job_ends().values())
    return [
        known.get(argument[1:].upper(), argument) if argument.startswith("$") else argument
        for argument in arguments
    ]
