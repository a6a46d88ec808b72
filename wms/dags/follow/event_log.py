"""Parser of HTCondor's job event log (text format), chunk by chunk as the log grows.

It returns the complete events (job, time, node name, exit code), the number of bytes used, and
faults.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo

#: Event numbers that matter for the state of a job.
SUBMIT, EXECUTE, EVICTED, TERMINATED, SHADOW_EXCEPTION, ABORTED = 0, 1, 4, 5, 7, 9
SUSPENDED, UNSUSPENDED, HELD, RELEASED = 10, 11, 12, 13
POST_SCRIPT_TERMINATED, RECONNECT_FAILED, PRE_SKIP = 16, 24, 34
CLUSTER_SUBMIT, CLUSTER_REMOVE = 35, 36
#: Highest known event number; events of later versions are ignored.
LAST_KNOWN = 47

_END = re.compile(rb"^\.\.\.\r?\n", re.MULTILINE)
#: Longer lines are cut: HTCondor writes none.
_MAX_LINE_LENGTH = 16 * 1024
_LARGEST = 2**31 - 1
_HEAD = re.compile(
    r"(?P<number>\d{3,4}) "
    r"\((?P<cluster>-?\d{1,10})\.(?P<process>-?\d{1,10})\.(?P<subprocess>-?\d{1,10})\) "
    r"(?:(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)|(?P<old_month>\d\d)/(?P<old_day>\d\d))"
    r"[ T](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?P<fraction>\.\d{1,6})?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?(?: (?P<text>.*))?\Z",
    re.ASCII,
)
_NOTE = "DAG Node: "
_NAME_IN_AD = re.compile(r"\bDAGNodeName = \"([^\"]+)\"")
_ENDED = re.compile(
    r"\((?:1\) Normal termination \(return value (?P<code>-?\d{1,10})"
    r"|0\) Abnormal termination \(signal (?P<signal>\d{1,4}))\)",
    re.ASCII,
)
_A_DAY = timedelta(days=1)


class NotAnEventLog(ValueError):
    """The file is not a job event log in the text format."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """Event of a job: number, job, time and text.

    `start` and `end` are byte positions in the parsed data.
    """

    number: int
    cluster: int
    process: int
    subprocess: int
    time: datetime
    text: str
    body: tuple[str, ...]
    start: int
    end: int

    @property
    def job(self) -> str:
        """Job id as `CLUSTER.PROCESS`."""
        return f"{self.cluster}.{self.process}"

    @property
    def node_name(self) -> str:
        """Name of the DAG node in a note of the event, or ''."""
        for line in self.body:
            name = _name_in(line.strip())
            if name:
                return name
        return ""

    @property
    def code(self) -> int | None:
        """Exit code of an end, or minus the signal; None without either."""
        for line in self.body:
            match = _ENDED.match(line.strip())
            if match is not None:
                code = int(match["code"] or f"-{match['signal']}")
                return code if abs(code) <= _LARGEST else None
        return None

    @property
    def reason(self) -> str:
        """First line of the body, which has the reason."""
        return self.body[0].strip() if self.body else ""


def _name_in(note: str) -> str:
    """Node name in a note of either kind; the last one in an ad."""
    if note.startswith(_NOTE):
        return note[len(_NOTE) :]
    is_ad = note.startswith("[") and note.endswith("]")
    return (_NAME_IN_AD.findall(note) or [""])[-1] if is_ad else ""


@dataclass(slots=True)
class ParsedLog:
    """Parsed events, the number of bytes used, and faults.

    Data after `used` is an incomplete event.
    """

    events: list[LogEvent] = field(default_factory=list)
    used: int = 0
    faults: list[str] = field(default_factory=list)


def read_events(data: bytes, *, now: datetime, zone: tzinfo = UTC) -> ParsedLog:
    """Complete events of `data`, which starts at the start of an event.

    An event is complete with the line `...` at its end. Times without a zone are in `zone`; times
    without a year are in the last year in which they are not after tomorrow. Events with unknown
    numbers are ignored; a malformed event is a fault. Raises NotAnEventLog for the XML and JSON
    formats.
    """
    head = data[:200].lstrip()
    if head[:1] in (b"<", b"{"):
        raise NotAnEventLog("this is a log in the XML or JSON format, only text can be read")
    reading = ParsedLog()
    for end in _END.finditer(data):
        start, reading.used = reading.used, end.end()
        # Here and there a log has an empty line between events.
        text = data[start : end.start()].decode("utf-8", errors="replace").strip("\r\n")
        # Neither a name nor a reason can be stored with a zero in it.
        text = text.replace("\0", "")
        try:
            event = _event(text.split("\n"), start, end.end(), now, zone)
        except ValueError as error:
            reading.faults.append(f"byte {start}: {error}")
            continue
        if event.number <= LAST_KNOWN:
            reading.events.append(event)
    return reading


def _event(lines: list[str], start: int, end: int, now: datetime, zone: tzinfo) -> LogEvent:
    match = _HEAD.match(lines[0][:_MAX_LINE_LENGTH].rstrip("\r"))
    numbers = [int(match[name]) for name in ("cluster", "process", "subprocess")] if match else []
    if match is None or max(map(abs, numbers)) > _LARGEST:
        raise ValueError(f"no event begins like this: {lines[0][:80]!r}")
    return LogEvent(
        number=int(match["number"]),
        cluster=numbers[0],
        process=numbers[1],
        subprocess=numbers[2],
        time=_time(match, now, zone),
        text=match["text"] or "",
        body=tuple(line[:_MAX_LINE_LENGTH] for line in lines[1:]),
        start=start,
        end=end,
    )


def _time(match: re.Match[str], now: datetime, zone: tzinfo) -> datetime:
    microsecond = int(float(match["fraction"] or 0) * 1_000_000)
    clock = (int(match["hour"]), int(match["minute"]), int(match["second"]), microsecond)
    own_zone = _zone(match["zone"]) if match["zone"] else zone
    if match["year"]:
        date = (int(match["year"]), int(match["month"]), int(match["day"]))
        return datetime(*date, *clock, tzinfo=own_zone)
    month, day = int(match["old_month"]), int(match["old_day"])
    latest = now.astimezone(own_zone) + _A_DAY
    # The 29th of February may lie some years back.
    for year in range(latest.year, latest.year - 8, -1):
        try:
            time = datetime(year, month, day, *clock, tzinfo=own_zone)
        except ValueError:
            continue
        if time <= latest:
            return time
    raise ValueError(f"there is no day {month:02d}/{day:02d}")


def _zone(text: str) -> tzinfo:
    if text == "Z":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
