"""Lexer of DAG files: logical lines, words, canonical keywords, quotes, comments.

Words are separated by blanks, tabs and carriage returns. Quotes of both kinds group, and only
inside of them a backslash escapes. A comment takes a whole line. A backslash at a line's end joins
the next one, with a blank between them; comments and empty lines between joined lines are dropped.
Source: DagLexer::next and DagParser::getnextline (HTCondor 25.14, dag_parser.cpp).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from operator import methodcaller
from typing import NamedTuple

from wms.dags.language.faults import Fault

BLANKS = " \t\r"
#: Further characters that Python takes for blanks; the language does not.
_OTHER_BLANKS = "\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
# A piece of a word: without quotes, or what stands between two. Each repetition can match in one
# way only, so that a long line takes neither time nor memory.
_PIECE = re.compile(
    r"""[^ \t\r"']+|"([^"\\]*(?:\\.[^"\\]*)*)"|'([^'\\]*(?:\\.[^'\\]*)*)'""", re.DOTALL
)
_GAP = re.compile(r"[ \t\r]+")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def tokenize(text: str) -> list[str]:
    """Words of a text, without their quotes. Raises Fault for an open quote."""
    words: list[str] = []
    at = skip_blanks(text, 0)
    while at < len(text):
        end = end_of_word(text, at)
        words.append(unquote(text[at:end]))
        at = skip_blanks(text, end)
    return words


def take_word(text: str) -> tuple[str, str]:
    """First word of a text, without its quotes, and the rest of the text; both may be empty.

    Raises Fault for an open quote.
    """
    start = skip_blanks(text, 0)
    end = end_of_word(text, start)
    return unquote(text[start:end]), text[end:].strip(BLANKS)


def skip_blanks(text: str, at: int) -> int:
    """Position of the first character after the blanks at `at`."""
    match = _GAP.match(text, at)
    return match.end() if match else at


def end_of_word(text: str, at: int) -> int:
    """Position at which the word ends that begins at `at`. Raises Fault for an open quote."""
    while at < len(text) and text[at] not in BLANKS:
        match = _PIECE.match(text, at)
        if match is None:
            raise Fault("a quote is not closed")
        at = match.end()
    return at


def split_blanks(text: str) -> list[str]:
    """Words of a text in which quotes have no meaning."""
    return _GAP.split(stripped) if (stripped := text.strip(BLANKS)) else []


def unquote(word: str) -> str:
    """Word without the quotes that group it, and without the backslashes that escape in it.

    Raises Fault for an open quote.
    """
    if '"' not in word and "'" not in word:
        return word
    end_of_word(word, 0)
    return "".join(
        piece[0] if piece[0][0] not in "\"'" else unescape(piece[0][1:-1])
        for piece in _PIECE.finditer(word)
    )


def unescape(text: str) -> str:
    """Text from between quotes, with `\\"` and `\\\\` replaced by the characters that they mean."""
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def keyword(word: str) -> str:
    """Keyword in its canonical form: upper case, `-` for `_`."""
    return word.upper().replace("_", "-")


_SPLIT_HEAD = methodcaller("split", None, 1)


def _split_head(text: str) -> list[str]:
    stripped = text.strip(BLANKS)
    return _GAP.split(stripped, maxsplit=1) if stripped else []


class Stretch(NamedTuple):
    """Lines that stand together: the index of the first, their number, and where they are in the
    text, which begins with the end of the line before.
    """

    at: int
    length: int
    start: int
    end: int


class SourceText:
    """Lines of one file. A line is emptied when it has been read, so that it is read only once.

    `lines` are there when the text is split. Stretches that may be read as a whole stay unsplit,
    and empty, until one of their lines is looked at: lines take several times the memory of text.
    """

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.text = text = text.removeprefix("\ufeff")
        #: Python's own way to split lines at blanks can be used: it is several times faster.
        self.is_plain = not any(blank in text for blank in _OTHER_BLANKS)
        #: The first word of a text and the rest of it, if there is a rest; empty for none.
        self.head: Callable[[str], list[str]] = _SPLIT_HEAD if self.is_plain else _split_head
        self.has_joins = re.search(r"\\[ \t\r]*(?:\n|\Z)", text) is not None
        self.lines: list[str] = []
        self._unsplit: dict[int, Stretch] = {}
        self._starts: list[int] = []

    @property
    def line_count(self) -> int:
        """Number of lines, also of a text that is not split."""
        return self.text.count("\n") + 1

    def split(self, unsplit: Iterable[Stretch] = ()) -> None:
        """Split the text into `lines`, without these stretches, which are in the text's order."""
        self.lines = lines = []
        text, position = self.text, 0
        for each in unsplit:
            self._unsplit[each.at] = each
            self._starts.append(each.at)
            if position <= each.start:
                lines += text[position : each.start].split("\n")
            lines += [""] * each.length
            position = each.end + 1
        if position <= len(text):
            lines += text[position:].split("\n")

    def take_stretch(self, at: int) -> bool:
        """Whether the stretch that begins at a line is unsplit; if so, it counts as read."""
        return self._unsplit.pop(at, None) is not None

    def split_stretch(self, stretch: Stretch) -> None:
        """Split a stretch into lines, to be read one by one."""
        at, length, start, end = stretch
        self.lines[at : at + length] = self.text[start + 1 : end].split("\n")

    def _line(self, at: int) -> str:
        """A line, which is split now if it was not."""
        if not self.lines[at] and self._unsplit:
            start = self._starts[max(0, bisect_right(self._starts, at) - 1)]
            stretch = self._unsplit.get(start)
            if stretch is not None and start <= at < start + stretch.length:
                del self._unsplit[start]
                self.split_stretch(stretch)
        return self.lines[at]

    def words(self, rest: str) -> list[str]:
        """Words of a part of a line. Raises Fault for an open quote."""
        if self.is_plain and '"' not in rest and "'" not in rest:
            return rest.split()
        return tokenize(rest)

    def join(self, at: int) -> str:
        """The line together with those that a backslash joins to it."""
        line = self.lines[at].rstrip(BLANKS)
        parts = []
        while line.endswith("\\"):
            parts.append(line[:-1])
            at += 1
            while at < len(self.lines) and is_passed_over(self._line(at)):
                self.lines[at] = ""
                at += 1
            if at == len(self.lines):
                break
            line = self.lines[at].strip(BLANKS)
            self.lines[at] = ""
        else:
            parts.append(line)
        return " ".join(parts)

    def take_block(self, at: int, closing: str) -> tuple[str, str] | None:
        """Lines after `at` up to the one that begins with `closing`, and the rest of that line.

        None if there is no such line; all lines after `at` are emptied then.
        """
        for end in range(at + 1, len(self.lines)):
            line = self._line(end).strip(BLANKS)
            rest = line[len(closing) :]
            if line.startswith(closing) and (not rest or rest[0] in BLANKS):
                text = "\n".join(self.lines[at + 1 : end])
                self._empty(at + 1, end + 1)
                return text, rest
        self._empty(at + 1, len(self.lines))
        return None

    def _empty(self, start: int, end: int) -> None:
        self.lines[start:end] = [""] * (end - start)


def is_comment(line: str) -> bool:
    """Whether the whole line is a comment."""
    return line.lstrip(BLANKS).startswith(("#", "//"))


def is_passed_over(line: str) -> bool:
    """Whether the line is a comment or empty."""
    return not line.strip(BLANKS) or is_comment(line)
