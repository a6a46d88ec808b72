"""Lines and words of a DAG file.

Words are separated by blanks, tabs and carriage returns. Quotes of both kinds group, and only
inside of them a backslash escapes. A comment takes a whole line. A backslash at a line's end joins
the next one, and comments between joined lines are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import methodcaller

from wms.dags.language.faults import Fault

_BLANKS = " \t\r"
#: What Python takes for blanks besides; the language does not.
_OTHER_BLANKS = "\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
# The repetitions are possessive, so that a long line takes neither time nor memory to give back.
_WORD = re.compile(
    r"""(?:[^ \t\r"']++|"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+')++(?=[ \t\r]|\Z)""", re.DOTALL
)
_GAP = re.compile(r"[ \t\r]*+")
_PIECE = re.compile(r""""((?:[^"\\]++|\\.)*+)"|'((?:[^'\\]++|\\.)*+)'|([^"']++)""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def tokenize(text: str) -> list[str]:
    """The words of a text, without their quotes. Raises Fault for an open quote."""
    words: list[str] = []
    at = _end(_GAP.match(text))
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None:
            raise Fault("a quote is not closed")
        words.append(unquote(found[0]))
        at = _end(_GAP.match(text, found.end()))
    return words


def _end(found: re.Match[str] | None) -> int:
    return found.end() if found else 0


def unquote(word: str) -> str:
    """The word without the quotes that group it, and without the backslashes that escape in it."""
    if '"' not in word and "'" not in word:
        return word
    return "".join(
        plain or unescape(double or single or "") for double, single, plain in _PIECE.findall(word)
    )


def unescape(text: str) -> str:
    """What stands between quotes, with `\\"` and `\\\\` as what they mean."""
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def keyword(word: str) -> str:
    """A keyword in its usual form: they are read in any case, with `-` or `_`."""
    return word.upper().replace("_", "-")


_SPLIT_HEAD = methodcaller("split", None, 1)
_HEAD = re.compile(r"[ \t\r]*+([^ \t\r]++)(?:[ \t\r]++(.+))?", re.DOTALL)


def _split_head(text: str) -> list[str]:
    found = _HEAD.match(text)
    return [each for each in found.groups() if each is not None] if found else []


class SourceText:
    """The lines of one file. Whoever has read a line empties it, so that nobody reads it again."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        text = text.removeprefix("\ufeff")
        #: Python's own way to split lines at blanks can be used: it is several times faster.
        self.is_plain = not any(blank in text for blank in _OTHER_BLANKS)
        #: The first word of a text and the rest of it, if there is a rest; empty for none.
        self.head: Callable[[str], list[str]] = _SPLIT_HEAD if self.is_plain else _split_head
        self.has_joins = re.search(r"\\[ \t\r]*+(?:\n|\Z)", text) is not None
        self.lines = text.split("\n")

    def words(self, rest: str) -> list[str]:
        """The words of a part of a line. Raises Fault for an open quote."""
        if self.is_plain and '"' not in rest and "'" not in rest:
            return rest.split()
        return tokenize(rest)

    def join(self, at: int) -> str:
        """The line with those that are joined to it."""
        line = self.lines[at].rstrip(_BLANKS)
        parts = []
        while line.endswith("\\"):
            parts.append(line[:-1])
            at += 1
            while at < len(self.lines) and is_comment(self.lines[at]):
                self.lines[at] = ""
                at += 1
            if at == len(self.lines):
                return "".join(parts)
            line = self.lines[at].rstrip(_BLANKS)
            self.lines[at] = ""
        return "".join([*parts, line])

    def take_block(self, at: int, closing: str) -> tuple[str, str] | None:
        """The lines behind `at` up to the one that begins with `closing`, and the rest of that one.

        None if there is no such line; then everything behind `at` is taken.
        """
        for end in range(at + 1, len(self.lines)):
            line = self.lines[end].strip(_BLANKS)
            rest = line[len(closing) :]
            if line.startswith(closing) and (not rest or rest[0] in _BLANKS):
                text = "\n".join(self.lines[at + 1 : end])
                self._empty(at + 1, end + 1)
                return text, rest
        self._empty(at + 1, len(self.lines))
        return None

    def _empty(self, start: int, end: int) -> None:
        self.lines[start:end] = [""] * (end - start)


def is_comment(line: str) -> bool:
    """True for a line that is a comment as a whole."""
    return line.lstrip(_BLANKS).startswith(("#", "//"))
