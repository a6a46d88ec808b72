"""Time that a batch system leaves to the pilot's own batch job: Slurm and HTCondor, as they tell.

ARC starts pilots in the batch system below it, whose answer is found here as well; of a host and of
a batch system that says nothing there is none, and what the queue was configured with counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..programs import NoAnswer, answer_of

#: For each question. A controller that is busy answers late, and pilots must not wait for it.
QUESTION_TIMEOUT_S = 10.0
_MOST_AD_BYTES = 1024 * 1024
#: More is a mistake, or a way to say "for ever".
_MOST_S = 10 * 366 * 86_400

_SLURM_TIME = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{2})")
_SLURM_ENDLESS = frozenset({"UNLIMITED", "NOT_SET", "Partition_Limit"})
_SLURM_FIELD = re.compile(r"\b(RunTime|TimeLimit)=(\S+)")
_AD_NUMBER = re.compile(r"(?m)^\s*([A-Za-z_]\w*)\s*=\s*(\d{1,12}(?:\.\d{1,9})?)\s*$")

#: Durations that a schedd allows a job, in lower case, each with the attribute that tells since
#: when; over them it holds the job.
_CONDOR_ALLOWED = {
    "allowedjobduration": "jobcurrentstartdate",
    "allowedexecuteduration": "jobcurrentstartexecutingdate",
}
#: End of the slot itself, where that is one of a pilot of another pool (glideinWMS).
_CONDOR_END = "glidein_todie"


@dataclass(frozen=True)
class BatchTime:
    """Answer of the batch systems that the pilot runs in.

    `source` is the one that leaves least, empty where none told anything; `left_s` is None without
    a limit. `faults` are questions without an answer.
    """

    source: str = ""
    left_s: float | None = None
    faults: tuple[str, ...] = ()


class _Unknown(Exception):
    """A batch system tells no time. `faults` are what went wrong with it."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__()
        self.faults = faults


def ask_batch_system(
    environment: Mapping[str, str],
    *,
    age_s: float,
    now: float,
    ask: Callable[[list[str], float], str] = answer_of,
) -> BatchTime:
    """Ask every batch system that the environment names. It lasts two time limits at the most.

    `age_s` is the pilot's age, `now` the time of the clock. Never raises.
    """
    told: list[tuple[float, str, float | None]] = []
    faults: list[str] = []
    if environment.get("SLURM_JOB_ID", "").isdigit():
        try:
            left_s, failed = _slurm(environment, now, ask)
        except _Unknown as error:
            faults += error.faults
        else:
            faults += failed
            told.append((_MOST_S if left_s is None else left_s, "slurm", left_s))
    if "_CONDOR_JOB_AD" in environment or "_CONDOR_MACHINE_AD" in environment:
        try:
            told.append((left := _condor(environment, age_s, now), "htcondor", left))
        except _Unknown as error:
            faults += error.faults
    if not told:
        return BatchTime(faults=tuple(faults))
    _, source, least_s = min(told, key=lambda each: each[:2])
    return BatchTime(source, least_s, tuple(faults))


def read_slurm_time(text: str) -> float | None:
    """Seconds in a time as Slurm prints it, `[days-][hours:]minutes:seconds`; None: no limit.

    Raises ValueError.
    """
    if text in _SLURM_ENDLESS:
        return None
    found = _SLURM_TIME.fullmatch(text)
    if not found:
        raise ValueError(f"{text[:40]!r} is no time")
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return float(days * 86_400 + hours * 3600 + minutes * 60 + seconds)


def read_scontrol(text: str) -> float | None:
    """Seconds left of a job as `scontrol show job` tells it; None: no limit. Raises ValueError."""
    fields = dict(_SLURM_FIELD.findall(text))
    if len(fields) != 2:
        raise ValueError("RunTime and TimeLimit are not told")
    limit_s, ran_s = read_slurm_time(fields["TimeLimit"]), read_slurm_time(fields["RunTime"])
    return None if limit_s is None else max(0.0, limit_s - (ran_s or 0.0))


def _slurm(
    environment: Mapping[str, str], now: float, ask: Callable[[list[str], float], str]
) -> tuple[float | None, tuple[str, ...]]:
    """Seconds left in Slurm, and what went wrong before they were known. Raises _Unknown."""
    job = environment["SLURM_JOB_ID"]
    questions: list[tuple[list[str], Callable[[str], float | None]]] = [
        (["squeue", "-h", "-j", job, "-o", "%L"], lambda text: read_slurm_time(text.strip())),
        (["scontrol", "-o", "show", "job", job], read_scontrol),
    ]
    failed: list[str] = []
    absent: list[str] = []
    for command, read in questions:
        try:
            return read(ask(command, QUESTION_TIMEOUT_S)), tuple(failed)
        except NoAnswer as error:
            (absent if error.is_absent else failed).append(str(error))
        except ValueError as error:
            failed.append(f"{command[0]}: {error}")
    end = environment.get("SLURM_JOB_END_TIME", "")
    if end.isdigit() and now < int(end) < now + _MOST_S:
        # Nodes where jobs run in images often lack the programs: that is no fault then.
        return int(end) - now, tuple(failed)
    raise _Unknown((*failed, *absent))


def _condor(environment: Mapping[str, str], age_s: float, now: float) -> float:
    """Seconds left in HTCondor. Raises _Unknown."""
    job: dict[str, float] = {}
    machine: dict[str, float] = {}
    faults: list[str] = []
    for name, into in (("_CONDOR_JOB_AD", job), ("_CONDOR_MACHINE_AD", machine)):
        try:
            if name in environment:
                into.update(read_ad_numbers(_bounded_text(Path(environment[name]))))
        except (OSError, ValueError) as error:
            faults.append(f"{name}: {error}")
    told = [
        job[name] - max(0.0, now - job[since] if since in job else age_s)
        for name, since in _CONDOR_ALLOWED.items()
        if name in job
    ]
    if now - 86_400 < machine.get(_CONDOR_END, 0.0) < now + _MOST_S:
        told.append(machine[_CONDOR_END] - now)
    if not told:
        raise _Unknown(tuple(faults))
    return max(0.0, min(told))


def read_ad_numbers(text: str) -> dict[str, float]:
    """Attributes of an ad that are plain numbers, by their names in lower case."""
    return {name.lower(): float(value) for name, value in _AD_NUMBER.findall(text)}


def _bounded_text(file: Path) -> str:
    if not file.is_file():
        raise ValueError("is no file")
    with file.open("rb") as source:
        return source.read(_MOST_AD_BYTES).decode("utf-8", "replace")
