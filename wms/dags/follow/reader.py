"""Reading HTCondor's job event log in its text format, piece by piece as it grows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo

#: Numbers of the events that tell something of a job's way.
SUBMIT, EXECUTE, EVICTED, TERMINATED, SHADOW_EXCEPTION, ABORTED = 0, 1, 4, 5, 7, 9
SUSPENDED, UNSUSPENDED, HELD, RELEASED = 10, 11, 12, 13
POST_SCRIPT_TERMINATED, RECONNECT_FAILED, PRE_SKIP = 16, 24, 34
CLUSTER_SUBMIT, CLUSTER_REMOVE = 35, 36
#: The greatest number that is known; events beyond it are of later versions, and passed over.
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
    """The file is no job event log in the text format."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event: its number, whose it is, when it was, its text, and where it begins and ends.

    `start` and `end` are bytes from the beginning of what was read.
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
        """The job's number as people know it."""
        return f"{self.cluster}.{self.process}"

    @property
    def node_name(self) -> str:
        """The DAG node that a note tells, or nothing."""
        for line in self.body:
            name = _name_in(line.strip())
            if name:
                return name
        return ""

    @property
    def code(self) -> int | None:
        """The exit code of an end, or minus the signal; None where neither is told."""
        for line in self.body:
            found = _ENDED.match(line.strip())
            if found is not None:
                code = int(found["code"] or f"-{found['signal']}")
                return code if abs(code) <= _LARGEST else None
        return None

    @property
    def reason(self) -> str:
        """The first line behind the event's own, which tells why it was."""
        return self.body[0].strip() if self.body else ""


def _name_in(note: str) -> str:
    """The name of a node in a note of either kind; the last one of an ad."""
    if note.startswith(_NOTE):
        return note[len(_NOTE) :]
    is_ad = note.startswith("[") and note.endswith("]")
    return (_NAME_IN_AD.findall(note) or [""])[-1] if is_ad else ""


@dataclass(slots=True)
class Reading:
    """What was read: events, how many bytes they took, and what could not be understood.

    Behind `used` the last event is not complete yet, or nothing has come.
    """

    events: list[LogEvent] = field(default_factory=list)
    used: int = 0
    faults: list[str] = field(default_factory=list)


def read_events(data: bytes, *, now: datetime, zone: tzinfo = UTC) -> Reading:
    """The complete events at the beginning of `data`, which begins where an event does.

    An event counts when the line `...` behind it has come. Times without a zone are of `zone`; of
    those without a year it is the last one that is not after tomorrow. Events with a number that is
    not known are passed over; one that makes no sense is passed over and told. Raises
    NotAnEventLog for the XML and JSON formats.
    """
    head = data[:200].lstrip()
    if head[:1] in (b"<", b"{"):
        raise NotAnEventLog("this is a log in the XML or JSON format, only text can be read")
    reading = Reading()
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
    found = _HEAD.match(lines[0][:_MAX_LINE_LENGTH].rstrip("\r"))
    numbers = [int(found[name]) for name in ("cluster", "process", "subprocess")] if found else []
    if found is None or max(map(abs, numbers)) > _LARGEST:
        raise ValueError(f"no event begins like this: {lines[0][:80]!r}")
    return LogEvent(
        number=int(found["number"]),
        cluster=numbers[0],
        process=numbers[1],
        subprocess=numbers[2],
        time=_time(found, now, zone),
        text=found["text"] or "",
        body=tuple(line[:_MAX_LINE_LENGTH] for line in lines[1:]),
        start=start,
        end=end,
    )


def _time(found: re.Match[str], now: datetime, zone: tzinfo) -> datetime:
    microsecond = int(float(found["fraction"] or 0) * 1_000_000)
    clock = (int(found["hour"]), int(found["minute"]), int(found["second"]), microsecond)
    own_zone = _zone(found["zone"]) if found["zone"] else zone
    if found["year"]:
        date = (int(found["year"]), int(found["month"]), int(found["day"]))
        return datetime(*date, *clock, tzinfo=own_zone)
    month, day = int(found["old_month"]), int(found["old_day"])
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
