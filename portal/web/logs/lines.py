"""Log lines as safe HTML: numbered links, highlights, colours, notes for missing bytes.

ANSI colours become classes, other escapes are left out, control characters and those that change
the direction of text are shown as signs, such as `^@`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from portal.shared.sizes import size
from wms.jobs.output.lines import Line
from wms.jobs.output.texts import Gap

#: Most characters of a line that are shown; a download has all.
LINE_CHARACTERS = 2000
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
#: Codes that introduce a palette colour, which is not shown.
_PALETTES = ("38", "48")
# Colours and weights are `ESC [ numbers m`; titles and links are `ESC ] ... BEL`.
_ESCAPES = re.compile(
    r"\x1b\[(?P<sgr>[0-9;]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]"
)
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Marked:
    """Highlighted lines: by their numbers, or the one that begins at a byte."""

    numbers: range = range(0)
    place: int = -1

    def has(self, line: Line, number: int | None) -> bool:
        """True for a highlighted line."""
        return line.start == self.place or (number is not None and number in self.numbers)


def lines_as_html(lines: Iterable[Line], *, first: int | None, marked: Marked) -> str:
    """Lines with their numbers as links; marked lines are highlighted.

    Without a `first` number the links go to the places of the lines. Written by hand and not by a
    template: it is done for a thousand lines at once.
    """
    return "".join(
        _line(line, None if first is None else first + place, marked)
        for place, line in enumerate(lines)
    )


def _line(line: Line, number: int | None, marked: Marked) -> str:
    is_marked = marked.has(line, number)
    css = "line is-marked" if is_marked else "line"
    here = ' aria-current="true"' if is_marked else ""
    link = f"?at={line.start}" if number is None else f"?line={number}"
    name = "" if number is None else f' id="L{number}"'
    label = "\u00b7" if number is None else number
    return (
        f'<div class="{css}"{name}><a class="no" href="{link}" tabindex="-1"{here}>{label}</a>'
        f"{text_as_html(line)}</div>"
    )


def gap_as_html(gap: Gap | None) -> str:
    """Note in place of missing bytes; empty if none is missing."""
    if gap is None:
        return ""
    where = f"bytes {gap.start} to {gap.end}"
    return f'<p class="gap" role="note">{size(gap.end - gap.start)} are not here: {where}</p>'


def text_as_html(line: Line) -> str:
    """A line without its number."""
    text = line.content.decode("utf-8", errors="replace")
    return f'<span class="text">{_shown(text, line)}</span>'


def _shown(text: str, line: Line) -> str:
    notes = [] if line.has_begin else ["the line begins earlier"]
    overwritten, text = _last_print(text)
    if overwritten:
        notes.append(f"overwritten {overwritten} time{'s' if overwritten > 1 else ''}")
    is_cut = len(text) > LINE_CHARACTERS
    shown = _coloured(text[:LINE_CHARACTERS])
    before = "".join(f'<i class="cut-note">{note}</i> ' for note in notes)
    more = f"{len(text) - LINE_CHARACTERS} more characters" if is_cut else ""
    after = f' <i class="cut-note">{more or "the line goes on"}</i>'
    return before + shown + (after if is_cut or (not line.has_end and not line.has_begin) else "")


def _last_print(text: str) -> tuple[int, str]:
    """Number of overwrites by carriage returns in a line, and its final text."""
    text = text.rstrip("\r")
    prints = [part for part in text.split("\r") if part]
    return max(len(prints) - 1, 0), prints[-1] if prints else ""


def _coloured(text: str) -> str:
    """Text with its ANSI colours as classes; colours do not carry over between lines."""
    parts: list[str] = []
    classes: tuple[str, ...] = ()
    place = 0
    for found in _ESCAPES.finditer(text):
        parts.append(_span(text[place : found.start()], classes))
        place = found.end()
        if found["sgr"] is not None:
            classes = _classes(found["sgr"], classes)
    parts.append(_span(text[place:], classes))
    return "".join(parts)


def _span(text: str, classes: Sequence[str]) -> str:
    if not text:
        return ""
    safe = _UNSEEN.sub(_picture, escape(text))
    return f'<span class="{" ".join(classes)}">{safe}</span>' if classes else safe


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    shown = f"^{chr(code ^ 0x40)}" if code < 0x20 or code == 0x7F else f"U+{code:04X}"
    return f'<i class="ctl">{shown}</i>'


def _classes(codes: str, now: tuple[str, ...]) -> tuple[str, ...]:
    for code in codes.split(";"):
        if code in _PALETTES:
            break
        now = _styled(int(code[:4] or 0), now)
    return now


def _styled(code: int, now: tuple[str, ...]) -> tuple[str, ...]:
    if code == 0:
        return ()
    if code == 1:
        return _with(now, "ansi-bold", lambda name: name == "ansi-bold")
    if 30 <= code <= 37 or 90 <= code <= 97:
        return _with(now, f"ansi-{_COLOURS[code % 10]}", lambda name: name != "ansi-bold")
    if code == 39:
        return tuple(name for name in now if name == "ansi-bold")
    if code == 22:
        return tuple(name for name in now if name != "ansi-bold")
    return now


def _with(now: tuple[str, ...], name: str, replaces: Callable[[str], bool]) -> tuple[str, ...]:
    return (*(each for each in now if not replaces(each)), name)
