"""Logs of attempts, pilots, scripts and stored files: source of the text, or why it is missing.

Also the look-up of an attempt, the names of its streams, and the time for which a request may
count lines.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from matching.negotiation.deadline import Deadline
from portal.shared.sizes import size
from wms.core.errors import NotFound
from wms.core.storage.contents import Readable
from wms.core.storage.current import current_store
from wms.dags.models import ScriptRun
from wms.dags.states import ScriptState
from wms.jobs.content.blobs import blob_content, blob_counts
from wms.jobs.models import Attempt, AttemptFile, Blob, Job
from wms.jobs.output.lines import LineCounts
from wms.jobs.output.segments import HALF_BYTES
from wms.jobs.output.streams import KEPT, stream_file, stream_text
from wms.jobs.output.texts import Gap, PiecedText, ShortText, Span, StoredText, Text
from wms.jobs.selectors import attempts_of
from wms.pilots.agent.files.sandbox import LOG_LIMIT_BYTES
from wms.pilots.models import Pilot, PilotLog
from wms.pilots.protocol.logs import log_file, log_text
from wms.pilots.selectors import asked_log, stored_log
from wms.pilots.states import ALIVE

#: So long one request may count lines: the rest is counted by those that follow.
_COUNTING_S = 0.12
_NOTHING = ShortText(b"")
#: What a pilot writes between the beginning and the end of a long output.
LEFT_OUT = re.compile(rb"\n\[\.\.\. pilot: ([0-9]{1,18}) bytes left out here \.\.\.\]\n")
_LONGEST_MARK = 80
#: So many gaps are told with their places.
_GAPS_TOLD = 3


@dataclass(frozen=True, slots=True)
class Log:
    """Text of a log; `missing` is the reason why there is none, `note` describes gaps.

    One that `is_growing` may be longer the next time; its first bytes stay the same.
    """

    text: Text
    file_name: str
    is_growing: bool = False
    updated_at: datetime | None = None
    missing: str = ""
    note: str = ""
    counts_at: Path | None = None

    @property
    def counts(self) -> LineCounts:
        """Line counts of the log, by which lines are numbered."""
        return LineCounts(self.text, self.counts_at)

    @property
    def etag(self) -> str:
        """ETag of the log, the same while it is unchanged."""
        return f'"{self.text.size_bytes}-{int(self.is_growing)}"'

    def is_known_by(self, if_none_match: str | None) -> bool:
        """Whether a client has the log as it is, by the header If-None-Match."""
        return (if_none_match or "").removeprefix("W/") == self.etag


def counting_time() -> Deadline:
    """Deadline until which a request may count lines."""
    return Deadline(time.monotonic, _COUNTING_S)


def attempt_of(job: Job, number: int) -> Attempt:
    """One attempt of a job, with its files and streams. Raises NotFound."""
    attempt = attempts_of(job).filter(number=number).first()
    if attempt is None:
        raise NotFound(f"Job {job.pk} has no attempt {number}.")
    return attempt


def log_of_attempt(attempt: Attempt, kind: str, *, now: datetime) -> Log:
    """Log of an attempt: the file that it sent at its end, or what came while it ran."""
    is_open = not attempt.outcome
    name = f"job-{attempt.job_id}-{attempt.number}.{kind}.txt"
    file = next((each for each in attempt.files.all() if each.kind == kind), None)
    if file is not None:
        return _final(file.blob, name)
    stream = next((each for each in attempt.streams.all() if each.kind == kind), None)
    if stream is None:
        missing = _why_no_output(attempt, kind, now)
        return Log(_NOTHING, name, is_growing=is_open, missing=missing)
    text = stream_text(stream)
    return Log(
        text,
        name,
        is_open,
        updated_at=stream.updated_at,
        note=_what_lacks(text, is_open=is_open),
        counts_at=current_store().counts_path(stream_file(attempt.pk, kind).key),
    )


def _final(blob: Blob, name: str) -> Log:
    """The file that a pilot sent at the end, at the places that it had while it was written."""
    content = blob_content(blob.sha256)
    text = _shortened(content, blob.size_bytes) or StoredText(content, blob.size_bytes)
    note = ""
    if text.gaps:
        limit = size(LOG_LIMIT_BYTES // 2)
        missing = _gap_sentence(text.gaps)
        note = f"{missing} Of a long output a pilot keeps the first and the last {limit}."
    return Log(text, name, note=note, counts_at=blob_counts(blob.sha256))


def _shortened(content: Readable, size_bytes: int) -> Text | None:
    """The text of which a file has the beginning and the end, if it is one."""
    half = LOG_LIMIT_BYTES // 2
    extra = size_bytes - LOG_LIMIT_BYTES
    if not 0 < extra < _LONGEST_MARK:
        return None
    found = LEFT_OUT.fullmatch(content.read(half, extra))
    if found is None:
        return None
    behind = half + int(found[1])
    spans = (Span(0, half, content, 0), Span(behind, behind + half, content, half + extra))
    return PiecedText(spans)


def _why_no_output(attempt: Attempt, kind: str, now: datetime) -> str:
    if not attempt.outcome and attempt.started_at is None:
        return "The payload has not been started yet."
    if not attempt.outcome:
        return f"Nothing of {kind} has come yet: the pilot sends what is printed every half minute."
    if attempt.ended_at is not None and attempt.ended_at < now - KEPT:
        return f"What attempts printed that did not end properly is removed {KEPT.days} days later."
    if attempt.started_at is None:
        return "The attempt ended before its payload was started."
    return f"The attempt ended, and its pilot has sent nothing of {kind}."


def _what_lacks(text: Text, *, is_open: bool) -> str:
    notes = []
    if text.gaps:
        limit = size(HALF_BYTES)
        notes.append(
            f"{_gap_sentence(text.gaps)} A payload may print faster than its pilot sends; and of a "
            f"long output the first and the last {limit} are kept."
        )
        if is_open:
            notes.append("When it ends, its pilot sends what lacks of these.")
    if not is_open:
        notes.append("The end of this was not sent: the payload was killed, or its pilot stopped.")
    return " ".join(notes)


def _gap_sentence(gaps: Sequence[Gap]) -> str:
    """Sentence on the size and place of a gap."""
    places = [f"bytes {gap.start} to {gap.end}" for gap in gaps[-_GAPS_TOLD:]]
    more = f" and {len(gaps) - _GAPS_TOLD} earlier gaps" if len(gaps) > _GAPS_TOLD else ""
    total = sum(gap.end - gap.start for gap in gaps)
    return f"{size(total)} of this are not here ({', '.join(places)}{more})."


def log_of_pilot(pilot: Pilot, *, limit_bytes: int) -> Log:
    """Log of a pilot as it has sent it; else the end of what its batch system has.

    The batch system may be slow to answer, so it is not asked again and again: what it gave is not
    followed.
    """
    stored = stored_log(pilot)
    if stored is not None:
        return stored_log_of_pilot(pilot, stored)
    log_answer = asked_log(pilot, limit_bytes=limit_bytes)
    missing = log_answer.error or ("" if log_answer.text else "The pilot has printed nothing.")
    note = "" if missing else "The pilot has sent nothing: this is what its batch system has."
    return Log(ShortText(log_answer.text.encode()), _name(pilot), missing=missing, note=note)


def stored_log_of_pilot(pilot: Pilot, stored: PilotLog) -> Log:
    """Stored part of a pilot's log."""
    return Log(
        log_text(stored),
        _name(pilot),
        is_growing=pilot.state in ALIVE,
        updated_at=stored.updated_at,
        counts_at=current_store().counts_path(log_file(pilot.pk).key),
    )


def _name(pilot: Pilot) -> str:
    return f"pilot-{pilot.pk}.log.txt"


def log_of_script(run: ScriptRun) -> Log:
    """Log of a run of a script, stdout and stderr together."""
    name = f"script-{run.pk}.{run.kind}.txt"
    if run.output is not None:
        return log_of_blob(run.output, name)
    if run.state != ScriptState.ENDED:
        missing = "The script has not ended: what it prints is kept at its end."
        return Log(_NOTHING, name, is_growing=True, missing=missing)
    return Log(_NOTHING, name, missing=run.failure or "The script has printed nothing.")


def log_of_blob(blob: Blob, name: str) -> Log:
    """Log of a stored content."""
    text = StoredText(blob_content(blob.sha256), blob.size_bytes)
    return Log(text, name, counts_at=blob_counts(blob.sha256))


def log_kinds() -> tuple[str, ...]:
    """Names of the streams of every attempt: stdout and stderr."""
    return (AttemptFile.Kind.STDOUT.value, AttemptFile.Kind.STDERR.value)
