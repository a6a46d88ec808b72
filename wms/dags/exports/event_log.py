"""Export of a run as job event log in HTCondor's text format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from wms.dags.exports.timeline import JobId, Timeline, TimelineEvent
from wms.dags.models import Dag

#: Host of submissions, and of executions whose worker node is unknown.
_PORTAL = "<pilotage>"
_NOOP_HOST = "<dummy-submit-for-noop-job>"
#: POST ran although nothing was submitted.
_NO_JOB = JobId(-1, -1, -1)
_LONGEST_REASON = 1000


def lines(dag: Dag, now: datetime) -> Iterator[str]:
    """Text of the file, in pieces of one event. Events that HTCondor does not know are left out."""
    for event in Timeline(dag).events():
        write = _WRITERS.get(event.name)
        if write is not None:
            number, text = write(event)
            yield f"{number:03d} {_id(event.job)} {_time(event.time)} {text}...\n"


def _id(job: JobId | None) -> str:
    cluster, process, subprocess = job or _NO_JOB
    return f"({cluster:03d}.{process:03d}.{subprocess:03d})"


def _time(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def _note(event: TimelineEvent) -> str:
    return f"    DAG Node: {event.node}\n"


def _reason(event: TimelineEvent) -> str:
    """Reason on one line: a line `...` would end the event."""
    text = " ".join(event.text.split())[:_LONGEST_REASON]
    return f"\t{text or 'no reason was given'}\n"


def _submit(event: TimelineEvent) -> tuple[int, str]:
    is_noop = event.job is not None and event.job.cluster == 0
    host = _NOOP_HOST if is_noop else _PORTAL
    return 0, f"Job submitted from host: {host}\n{_note(event)}"


def _execute(event: TimelineEvent) -> tuple[int, str]:
    host = f"<{event.text}>" if event.text else _PORTAL
    return 1, f"Job executing on host: {host}\n"


def _evicted(event: TimelineEvent) -> tuple[int, str]:
    usage = _usage("Run Remote", event.cpu_s) + _usage("Run Local")
    text = f"Job was evicted.\n\t(0) CPU times\n{usage}{_bytes('Run')}"
    return 4, text + (_reason(event) if event.text else "")


def _terminated(event: TimelineEvent) -> tuple[int, str]:
    usage = "".join(
        _usage(f"{which} {where}", event.cpu_s if where == "Remote" else 0.0)
        for which in ("Run", "Total")
        for where in ("Remote", "Local")
    )
    end = _termination(event.code)
    return 5, f"Job terminated.\n{end}{usage}{_bytes('Run')}{_bytes('Total')}"


def _aborted(event: TimelineEvent) -> tuple[int, str]:
    return 9, f"Job was aborted.\n{_reason(event)}"


def _held(event: TimelineEvent) -> tuple[int, str]:
    return 12, f"Job was held.\n{_reason(event)}\tCode 1 Subcode 0\n"


def _released(event: TimelineEvent) -> tuple[int, str]:
    return 13, f"Job was released.\n{_reason(event)}"


def _post(event: TimelineEvent) -> tuple[int, str]:
    end = _termination(event.code, has_core_line=False)
    return 16, f"POST Script terminated.\n{end}{_note(event)}"


def _skipped(event: TimelineEvent) -> tuple[int, str]:
    return 34, f"PRE script return value is PRE_SKIP value\n{_note(event)}"


def _termination(code: int, *, has_core_line: bool = True) -> str:
    if code >= 0:
        return f"\t(1) Normal termination (return value {code})\n"
    core = "\t(0) No core file\n" if has_core_line else ""
    return f"\t(0) Abnormal termination (signal {-code})\n{core}"


def _usage(what: str, seconds: float = 0.0) -> str:
    days, rest = divmod(int(seconds), 86_400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"\t\tUsr {days} {clock}, Sys 0 00:00:00  -  {what} Usage\n"


def _bytes(which: str) -> str:
    return f"\t0  -  {which} Bytes Sent By Job\n\t0  -  {which} Bytes Received By Job\n"


_WRITERS: Mapping[str, Callable[[TimelineEvent], tuple[int, str]]] = {
    "SUBMIT": _submit,
    "EXECUTE": _execute,
    "JOB_EVICTED": _evicted,
    "JOB_TERMINATED": _terminated,
    "JOB_ABORTED": _aborted,
    "JOB_HELD": _held,
    "JOB_RELEASED": _released,
    "POST_SCRIPT_TERMINATED": _post,
    "PRESKIP": _skipped,
}
