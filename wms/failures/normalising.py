"""Normalisation of failure messages into texts of causes, and fingerprints of groups.

Rules apply one after another to what the ones before them left: each puts a placeholder such as
`<n>` for what it finds, drops it, or keeps it from the rules that follow. This goes on until
nothing changes any more, so that the text of a text is that text. A budget limits the searches for
each message.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wms.failures.patterns import compiled, fill_in

#: Bytes of a message that are normalised; they also bound the cost of an expression.
MAX_MESSAGE = 600
#: What all searches for one message may go over in bytes. Sixty rules take some 100,000, unless
#: one of them finds hundreds of places by looking far behind each, or needs hundreds of rounds.
MAX_SEARCHED_BYTES = 400_000
_PLACEHOLDER = re.compile(r"(<[a-z]+>)")
# Lists of any length are one: `<file>, <file> and <file>`.
_REPEATED = re.compile(r"(<[a-z]+>)(?:(?:, ?|; ?| and | )\1)+")
_NOTHING = "no reason was given"


class Piece(NamedTuple):
    """A piece of a message; a settled one is left as it is by the rules that follow."""

    text: str
    is_settled: bool


@dataclass(slots=True)
class SearchBudget:
    """Budget of searches for one message; the same for the same message and rules."""

    left_bytes: int = MAX_SEARCHED_BYTES

    def takes(self, size_bytes: int) -> bool:
        """Count a search; False when it is too much."""
        self.left_bytes -= size_bytes
        return self.left_bytes >= 0


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it looks for, and what stands there afterwards.

    A group called `it` narrows down what is replaced to a part of what is found.
    """

    pattern: str
    placeholder: str = ""
    keeps: bool = False

    def pieces_of(self, text: str, names: dict[str, str], budget: SearchBudget) -> list[Piece]:
        """The text, with what the rule finds in it settled, as far as the budget goes."""
        pattern = compiled(fill_in(self.pattern, names) if "{" in self.pattern else self.pattern)
        # RE2 reads UTF-8.
        content = text.encode(errors="replace")
        pieces, start, at = [], 0, 0
        while budget.takes(len(content) - at) and (found := pattern.find(content, at)):
            begin, end, at = found
            if begin < end:
                pieces.append(Piece(_decoded(content[start:begin]), False))
                inside = _decoded(content[begin:end]) if self.keeps else self._instead()
                pieces.append(Piece(inside, True))
                start = end
            if at > len(content):
                break
        pieces.append(Piece(_decoded(content[start:]), False))
        return pieces

    def _instead(self) -> str:
        return f"<{self.placeholder}>" if self.placeholder else ""


def _decoded(content: bytes) -> str:
    """A part of a text; `\\C` finds single bytes of characters."""
    return content.decode(errors="replace")


def normalise(
    message: str, rules: Sequence[Rule], *, owner: str = "", site: str = "", host: str = ""
) -> str:
    """Normalised text of a message, the text of its cause."""
    names = {"owner": owner, "site": site, "host": host}
    text, budget = _clip(message), SearchBudget()
    # Each round leaves fewer characters outside of placeholders, or fewer in all; it ends.
    while (shorter := _clip(_once(text, rules, names, budget))) != text:
        text = shorter
    return text or _NOTHING


def fingerprint(kind: str, text: str) -> str:
    """Fingerprint of a group: failures of one kind of object with the same text."""
    return hashlib.sha256(f"{kind}\n{text}".encode()).hexdigest()


def _once(text: str, rules: Sequence[Rule], names: dict[str, str], budget: SearchBudget) -> str:
    pieces = [
        Piece(part, place % 2 == 1) for place, part in enumerate(_PLACEHOLDER.split(text)) if part
    ]
    for rule in rules:
        pieces = [
            new
            for piece in pieces
            for new in ([piece] if piece.is_settled else rule.pieces_of(piece.text, names, budget))
        ]
    return _REPEATED.sub(r"\1", "".join(piece.text for piece in pieces))


def _clip(text: str) -> str:
    """Text in one line and cut to a length, without cutting through a placeholder."""
    # Only as much is looked at as could be left.
    line = " ".join(text[: 4 * MAX_MESSAGE].split())
    if len(line) <= MAX_MESSAGE:
        return line
    head = line[:MAX_MESSAGE]
    opened = head.rfind("<")
    is_cut = opened >= 0 and _PLACEHOLDER.match(line, opened) and ">" not in head[opened:]
    return (head[:opened] if is_cut else head).rstrip()
