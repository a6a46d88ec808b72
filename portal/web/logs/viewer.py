"""Log viewer: the requested window of lines, search, links to other windows, following."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe

from matching.negotiation.deadline import Deadline
from portal.shared.readable_logs import Log, counting_time
from portal.web.logs.lines import Marked, gap_as_html, lines_as_html, text_as_html
from wms.jobs.output.lines import (
    WINDOW_BYTES,
    Line,
    Search,
    Window,
    line_start,
    search_back,
    window_after,
    window_around,
    window_before,
)

_MAX_PLACE = 2**62
_LINES = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?\Z")
_LONGEST_WORDS = 200
#: One search reads so much, for so long, and finds so many lines.
SEARCH_BYTES = 256 * 1024 * 1024
SEARCH_S = 0.5
SEARCH_LINES = 100
FOLLOW_S = 2


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Query parameters of a log page; `faults` are by parameter. Default: the end."""

    before: int | None = None
    start: int | None = None
    at: int | None = None
    lines: range = range(0)
    words: str = ""
    until: int | None = None
    is_wrapped: bool = True
    faults: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, query: Mapping[str, str]) -> LogQuery:
        """Read the parameters of an address."""
        faults: dict[str, str] = {}
        places = {name: _place(query, name, faults) for name in ("before", "from", "at", "until")}
        words = query.get("q", "").strip()
        if len(words) > _LONGEST_WORDS or "\n" in words:
            faults["q"] = f"Look for at most {_LONGEST_WORDS} characters of one line."
            words = ""
        return cls(
            before=places["before"],
            start=places["from"],
            at=places["at"],
            lines=_numbers(query, faults),
            words=words,
            until=places["until"],
            is_wrapped=query.get("wrap") != "0",
            faults=faults,
        )


def _place(query: Mapping[str, str], name: str, faults: dict[str, str]) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text[:20]) > _MAX_PLACE:
        faults[name] = f"{name} must be the number of a byte."
        return None
    return int(text)


def _numbers(query: Mapping[str, str], faults: dict[str, str]) -> range:
    """First and last line of `120` or `120-140`."""
    text = query.get("line", "").strip()
    if not text:
        return range(0)
    found = _LINES.match(text) if text.isascii() else None
    if found is None or int(found[1]) < 1:
        faults["line"] = "Give the number of a line."
        return range(0)
    first, last = int(found[1]), int(found[2] or found[1])
    return range(min(first, last), max(first, last) + 1)


@dataclass(frozen=True, slots=True)
class ShownLines:
    """Lines of a window; `first` is the number of its first line, if known."""

    window: Window
    first: int | None
    marked: Marked
    fault: str = ""

    @property
    def html(self) -> SafeString:
        """Lines as HTML, with notes in place of missing bytes."""
        lines = lines_as_html(self.window.lines, first=self.first, marked=self.marked)
        gaps = (self.window.gap_before, self.window.gap_after)
        before, after = (gap_as_html(gap) for gap in gaps)
        return mark_safe(before + lines + after)


def show(log: Log, log_query: LogQuery) -> ShownLines:
    """Requested window; the end of the log if it is not available."""
    deadline = counting_time()
    window, marked, fault = _window(log, log_query, deadline)
    ends = log.counts.before(window.start, deadline)
    return ShownLines(window, None if ends is None else ends + 1, marked, fault)


def _window(log: Log, log_query: LogQuery, deadline: Deadline) -> tuple[Window, Marked, str]:
    text = log.text
    if log_query.lines:
        start = log.counts.start_of(log_query.lines.start, deadline)
        if start is None:
            end = window_before(text, text.size_bytes)
            return end, Marked(), _no_line(log, log_query.lines.start)
        return window_around(text, start), Marked(log_query.lines), ""
    if log_query.at is not None:
        begin = line_start(text, log_query.at)
        return window_around(text, begin), Marked(place=begin), ""
    if log_query.start is not None:
        return window_after(text, log_query.start), Marked(), ""
    end_at = text.size_bytes if log_query.before is None else log_query.before
    return window_before(text, end_at), Marked(), ""


def _no_line(log: Log, number: int) -> str:
    counts = log.counts
    if counts.share < 1:
        return f"Line {number} is not found yet: {counts.share:.0%} is counted. Ask again."
    if log.text.gaps:
        return f"There is no line {number} before byte {counts.end}; what follows is not here."
    return f"There is no line {number}."


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line that was found, with the link to it."""

    label: str
    link: str
    html: SafeString


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search, and where it stopped."""

    findings: Sequence[FoundLine]
    search: Search
    further: str

    @property
    def is_whole(self) -> bool:
        """True when the search reached the beginning."""
        return self.search.stopped_at == 0


def find(log: Log, log_query: LogQuery) -> SearchResult | None:
    """Search for the words, latest lines first."""
    if not log_query.words:
        return None
    search = search_back(
        log.text,
        log_query.words,
        end=log.text.size_bytes if log_query.until is None else log_query.until,
        limit_bytes=SEARCH_BYTES,
        limit_lines=SEARCH_LINES,
        deadline=Deadline(time.monotonic, SEARCH_S),
    )
    deadline = counting_time()
    findings = [_finding(log, line, deadline) for line in search.lines]
    further = urlencode({"q": log_query.words, "until": search.stopped_at})
    return SearchResult(findings, search, f"?{further}#search")


def _finding(log: Log, line: Line, deadline: Deadline) -> FoundLine:
    ends = log.counts.before(line.start, deadline)
    link = f"at={line.start}" if ends is None else f"line={ends + 1}"
    label = f"byte {line.start}" if ends is None else f"{ends + 1}"
    return FoundLine(label, f"?{link}", mark_safe(text_as_html(line)))


def log_page(request: HttpRequest, log: Log, context: Mapping[str, Any]) -> HttpResponse:
    """Page of a log, or with `part` the text added since a position.

    `context` has the title, where it is, and where it is downloaded.
    """
    log_query = LogQuery.of(request.GET)
    if request.GET.get("part"):
        return _part(request, log, log_query)
    shown = show(log, log_query)
    window, faults = shown.window, dict(log_query.faults)
    if shown.fault:
        faults["line"] = shown.fault
    status = 400 if log_query.faults else 404 if shown.fault else 200
    wrap = "" if log_query.is_wrapped else "&wrap=0"
    return render(
        request,
        "web/log.html",
        {
            **context,
            "log": log,
            "log_query": log_query,
            "shown": shown,
            "window": window,
            "found": find(log, log_query),
            "faults": faults,
            "counted": _counted(log, shown),
            "is_end": window.is_last and log_query.start is None,
            "last": (shown.first or 0) + len(window.lines) - 1,
            "earlier": f"?before={window.start}{wrap}",
            "later": f"?from={window.end}{wrap}",
            "beginning": f"?from=0{wrap}",
            "end": f"?{wrap[1:]}#end",
            "rewrapped": _rewrapped(request),
            "follow_s": FOLLOW_S,
        },
        status=status,
    )


def _counted(log: Log, shown: ShownLines) -> int:
    """Per cent of the log whose lines are counted; 100 when no shown line waits for its number."""
    is_waiting = shown.first is None and shown.window.start <= log.counts.end
    return int(100 * log.counts.share) if is_waiting else 100


def _rewrapped(request: HttpRequest) -> str:
    """Address of the same position with the wrapping of long lines toggled."""
    query = request.GET.copy()
    if query.pop("wrap", ["1"])[-1] != "0":
        query["wrap"] = "0"
    return f"?{query.urlencode()}#log"


def _part(request: HttpRequest, log: Log, log_query: LogQuery) -> HttpResponse:
    """Text after a position; only the end if one window does not reach it.

    Nothing is read where nothing was added.
    """
    if request.GET.get("count"):
        return _numbered(log, log_query)
    if log.is_known_by(request.headers.get("If-None-Match")):
        return HttpResponseNotModified(headers={"ETag": log.etag})
    size_bytes = log.text.size_bytes
    is_far = log_query.start is None or not 0 <= size_bytes - log_query.start <= WINDOW_BYTES
    shown = show(log, LogQuery() if is_far else log_query)
    if not shown.window.is_last:
        is_far, shown = True, show(log, LogQuery())
    answer = HttpResponse(shown.html)
    answer["ETag"] = log.etag
    answer["X-Log-Next"] = str(shown.window.next_start)
    answer["X-Log-Size"] = str(size_bytes)
    answer["X-Log-Is-End"] = "1" if is_far else "0"
    answer["X-Log-Is-Growing"] = "1" if log.is_growing else "0"
    answer["X-Log-Note"] = log.note
    answer["X-Log-Updated"] = log.updated_at.isoformat() if log.updated_at else ""
    return answer


def _numbered(log: Log, log_query: LogQuery) -> HttpResponse:
    """Number of the line at a position, or the counted share of the text before it."""
    ends = log.counts.before(log_query.start or 0, counting_time())
    answer = HttpResponse()
    answer["X-Log-First"] = "" if ends is None else str(ends + 1)
    answer["X-Log-Counted"] = str(int(100 * log.counts.share))
    return answer
