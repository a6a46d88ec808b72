"""A dry run as text for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from wms.core.errors import Finding
from wms.dags.simulation.behaviour import US_PER_S
from wms.dags.simulation.dry_runs import DryRun
from wms.dags.simulation.record import most_at_once

#: So many lines of each kind are shown; the rest is counted, and complete in JSON.
_MOST_LINES = 100
_HEADINGS = ("node", "state", "jobs", "scripts", "retries", "begins", "ends")


def report(found: DryRun, name: str) -> str:
    """The whole report of a dry run of this DAG file."""
    parts = [_told(found), _verdict(found, name)]
    if found.outcome.dag is not None:
        parts += [_table(found), _timing(found), _path(found), _never_ran(found), _rescue(found)]
    lines = [line for part in parts for line in part]
    return "\n".join(lines) + "\n"


def clock(microseconds: int) -> str:
    """A time as hours, minutes and seconds; shorter ones than a minute with parts of a second."""
    seconds, part = divmod(microseconds, US_PER_S)
    if seconds < 60 and part:
        return f"{microseconds / US_PER_S:.1f} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


def _told(found: DryRun) -> Iterator[str]:
    for kind, findings in (("error", found.outcome.findings), ("warning", found.warnings)):
        yield from _shortened([_line(kind, each) for each in findings])


def _line(kind: str, finding: Finding) -> str:
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file or finding.field
    command = f"{finding.command}: " if finding.command else ""
    return f"{place}: {kind}: {command}{finding.message}" if place else f"{kind}: {finding.message}"


def _shortened(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"... and {len(lines) - _MOST_LINES} more; --json has all"


def _verdict(found: DryRun, name: str) -> Iterator[str]:
    outcome = found.outcome
    if outcome.dag is None:
        yield f"{name} would be refused: {len(outcome.findings)} errors."
        return
    end = f", exit code {outcome.exit_code}" if outcome.exit_code is not None else ""
    why = f": {outcome.reason}" if outcome.reason else ""
    yield f"{name}: {outcome.dag_state}{end}{why}"


def _table(found: DryRun) -> Iterator[str]:
    dag_id = found.outcome.dag.pk if found.outcome.dag is not None else None
    jobs = Counter(run.name for run in found.outcome.record.runs if run.is_job)
    scripts = Counter(run.name for run in found.outcome.record.runs if run.kind in _SCRIPTS)
    rows: list[tuple[str, ...]] = []
    for node in found.outcome.nodes:
        is_own = node.dag_id == dag_id
        span = found.spans.get(node.name) if is_own else None
        times = (clock(span.start_us), clock(span.end_us)) if span else ("", "")
        name = node.name if is_own else f"  {node.name}"
        counts = (jobs[node.name], scripts[node.name], node.retries)
        rows.append((name, node.state, *(str(count or "") for count in counts), *times))
    if rows:
        yield ""
        yield from _shortened(list(_aligned([_HEADINGS, *rows])))


_SCRIPTS = frozenset({"pre", "post", "hold"})


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _timing(found: DryRun) -> Iterator[str]:
    runs = found.outcome.record.runs
    jobs = [run for run in runs if run.is_job]
    busy_us = sum(run.ended_us - run.started_us for run in jobs if run.ended_us is not None)
    states = Counter(node.state for node in found.outcome.nodes)
    yield ""
    yield "nodes: " + ", ".join(f"{count} {state}" for state, count in states.items())
    yield f"It would take {clock(found.lasts_us)} and {clock(busy_us)} of jobs' time."
    yield f"jobs: {len(jobs)}, at most {most_at_once(jobs)} at once"


def _path(found: DryRun) -> Iterator[str]:
    if not found.path:
        return
    yield ""
    yield "critical path:"
    lines = []
    for leg in found.path:
        waited = f", after waiting {clock(leg.waited_us)}" if leg.waited_us else ""
        lines.append(f"  {leg.name}: {clock(leg.lasts_us)}{waited}")
    yield from _shortened(lines)


def _never_ran(found: DryRun) -> Iterator[str]:
    if not found.never_ran:
        return
    yield ""
    yield f"never ran: {len(found.never_ran)}"
    yield from _shortened([f"  {each.name} ({each.state}): {each.why}" for each in found.never_ran])


def _rescue(found: DryRun) -> Iterator[str]:
    done = found.outcome.rescue_done
    if done is not None:
        yield ""
        yield f"It would leave {found.outcome.rescue_path}, with {len(done)} nodes done."
