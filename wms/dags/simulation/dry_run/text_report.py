"""Text report of a dry run, as `simulate_dag` prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from wms.core.errors import Finding
from wms.dags.simulation.behaviour import US_PER_S
from wms.dags.simulation.dry_run.dry_runs import DryRunResult
from wms.dags.simulation.trace import max_concurrency

#: Limit of lines of each kind; the rest is counted, and complete in JSON.
_MAX_LINES = 100
_HEADINGS = ("node", "state", "jobs", "scripts", "retries", "begins", "ends")


def text_report(result: DryRunResult, name: str) -> str:
    """Report of a dry run of the DAG file of this name."""
    parts = [_findings(result), _headline(result, name)]
    if result.outcome.dag is not None:
        parts += [
            _node_table(result),
            _timing(result),
            _critical_path(result),
            _never_ran(result),
            _rescue(result),
        ]
    lines = [line for part in parts for line in part]
    return "\n".join(lines) + "\n"


def duration_text(microseconds: int) -> str:
    """Duration as hours, minutes and seconds; below a minute with tenths of a second."""
    seconds, part = divmod(microseconds, US_PER_S)
    if seconds < 60 and part:
        return f"{microseconds / US_PER_S:.1f} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


def _findings(result: DryRunResult) -> Iterator[str]:
    for kind, findings in (("error", result.outcome.findings), ("warning", result.warnings)):
        yield from _shortened([_line(kind, each) for each in findings])


def _line(kind: str, finding: Finding) -> str:
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file or finding.field
    command = f"{finding.command}: " if finding.command else ""
    return f"{place}: {kind}: {command}{finding.message}" if place else f"{kind}: {finding.message}"


def _shortened(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_MAX_LINES]
    if len(lines) > _MAX_LINES:
        yield f"... and {len(lines) - _MAX_LINES} more; --json has all"


def _headline(result: DryRunResult, name: str) -> Iterator[str]:
    outcome = result.outcome
    if outcome.dag is None:
        yield f"{name} would be refused: {len(outcome.findings)} errors."
        return
    end = f", exit code {outcome.exit_code}" if outcome.exit_code is not None else ""
    why = f": {outcome.reason}" if outcome.reason else ""
    yield f"{name}: {outcome.dag_state}{end}{why}"


def _node_table(result: DryRunResult) -> Iterator[str]:
    dag_id = result.outcome.dag.pk if result.outcome.dag is not None else None
    jobs = Counter(run.name for run in result.outcome.trace.runs if run.is_job)
    scripts = Counter(run.name for run in result.outcome.trace.runs if run.kind in _SCRIPTS)
    rows: list[tuple[str, ...]] = []
    for node in result.outcome.nodes:
        is_own = node.dag_id == dag_id
        span = result.spans.get(node.name) if is_own else None
        times = (duration_text(span.start_us), duration_text(span.end_us)) if span else ("", "")
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


def _timing(result: DryRunResult) -> Iterator[str]:
    runs = result.outcome.trace.runs
    jobs = [run for run in runs if run.is_job]
    busy_us = sum(run.ended_us - run.started_us for run in jobs if run.ended_us is not None)
    states = Counter(node.state for node in result.outcome.nodes)
    yield ""
    yield "nodes: " + ", ".join(f"{count} {state}" for state, count in states.items())
    whole, busy = duration_text(result.duration_us), duration_text(busy_us)
    yield f"It would take {whole} and {busy} of jobs' time."
    yield f"jobs: {len(jobs)}, at most {max_concurrency(jobs)} at once"


def _critical_path(result: DryRunResult) -> Iterator[str]:
    if not result.critical_path:
        return
    yield ""
    yield "critical path:"
    lines = []
    for step in result.critical_path:
        waited = f", after waiting {duration_text(step.waited_us)}" if step.waited_us else ""
        lines.append(f"  {step.name}: {duration_text(step.duration_us)}{waited}")
    yield from _shortened(lines)


def _never_ran(result: DryRunResult) -> Iterator[str]:
    if not result.never_ran:
        return
    yield ""
    yield f"never ran: {len(result.never_ran)}"
    yield from _shortened(
        [f"  {each.name} ({each.state}): {each.why}" for each in result.never_ran]
    )


def _rescue(result: DryRunResult) -> Iterator[str]:
    done = result.outcome.rescue_done
    if done is not None:
        yield ""
        yield f"It would leave {result.outcome.rescue_path}, with {len(done)} nodes done."
