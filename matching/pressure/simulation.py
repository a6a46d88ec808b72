"""Simulation of one queue's pilots and jobs under the pressure formulas, cycle by cycle.

Tests check with it how the formulas behave; it is no database model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from matching.pressure.formulas import FrontendLimits, effective_idle, max_run, min_idle

#: Jobs that wait since the start are old from this cycle on.
_OLD_FROM = 10
#: A request stays for so many cycles after its author died.
_LEASE_CYCLES = 15
_MAX_SUBMITS = 100


@dataclass(slots=True)
class Course:
    """Numbers for each cycle; `pilots_without_job` counts pilots that started and found no job."""

    levels: list[int] = field(default_factory=list)
    submitted: list[int] = field(default_factory=list)
    peak_queued: int = 0
    pilots_without_job: int = 0

    @property
    def total_submitted(self) -> int:
        """Number of pilots that were sent."""
        return sum(self.submitted)

    @property
    def cycles(self) -> int:
        """Number of cycles that were used."""
        return len(self.levels)


def closed_loop(
    *,
    jobs: int,
    starts_per_cycle: int,
    attenuation: float = 3,
    jobs_removed_at: int | None = None,
    frontend_dies_at: int | None = None,
    max_cycles: int = 40,
) -> Course:
    """Simulate a queue with one-core jobs that never end, until no job and no pilot waits."""
    course = Course()
    queued = running = level = ceiling = 0
    for cycle in range(max_cycles):
        if cycle == jobs_removed_at:
            jobs = min(running, jobs)
        if frontend_dies_at is None or cycle < frontend_dies_at:
            level, ceiling = _request(jobs, running, cycle, attenuation)
        elif cycle >= frontend_dies_at + _LEASE_CYCLES:
            level, ceiling = 0, 0
        submitted = max(0, min(level - queued, ceiling - queued - running, _MAX_SUBMITS))
        course.levels.append(level)
        course.submitted.append(submitted)
        course.peak_queued = max(course.peak_queued, queued + submitted)
        started = min(starts_per_cycle, queued + submitted)
        queued, running = queued + submitted - started, running + started
        is_over = running >= jobs
        if frontend_dies_at is not None:
            is_over = cycle >= frontend_dies_at + _LEASE_CYCLES
        if is_over and not queued:
            break
    course.pilots_without_job = max(running - jobs, 0)
    return course


def _request(jobs: int, running: int, cycle: int, attenuation: float) -> tuple[int, int]:
    """Level and ceiling as the planner would ask for them."""
    waiting = jobs - min(running, jobs)
    idle = max(running - jobs, 0)
    need = effective_idle(
        share_idle_mc=waiting,
        share_old_idle_mc=waiting if cycle >= _OLD_FROM else 0,
        slots_idle=idle,
    )
    level = min_idle(
        effective_idle=need.effective_idle,
        effective_old_idle=need.effective_old_idle,
        limits=FrontendLimits(ramp_up_attenuation=attenuation),
    )
    busy = running - idle
    return level.min_idle, max_run(
        share_idle_mc=waiting, glideins_running_jobs=busy, slots_idle=idle
    )
