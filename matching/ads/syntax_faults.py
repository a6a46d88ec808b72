"""Position of the first syntax fault in a ClassAd expression, which HTCondor's parser withholds."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<open_quote>["']|/\*)"""
    r"""|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"""
    r"""|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"""
    r"""|(?P<binary>=\?=|=!=|\|\||&&|==|!=|<=|>=|<<|>>>?|[*/%|&^<>]|\?:)"""
    r"""|(?P<sign>[-+])"""
    r"""|(?P<unary>[!~])"""
    r"""|(?P<mark>[()\[\]{},;:?.=])"""
    r"""|(?P<other>.)""",
    re.DOTALL,
)
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_WORD_OPERATORS = frozenset({"is", "isnt"})


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """Line and column of a syntax fault, from 1 on, with a message."""

    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class _Bracket:
    mark: str
    at: int
    is_record: bool = False


def find_syntax_fault(text: str) -> SyntaxFault | None:
    """First syntax fault of `text`; None when none is found.

    It checks the order of values and operators, and brackets: it finds typing mistakes, but not
    everything that the library refuses.
    """
    fault = _Reader(text).read()
    if fault is None:
        return None
    at, message = fault
    before = text[:at]
    return SyntaxFault(before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1, message)


class _Reader:
    """Reads token by token; `_expects_value` is true where a value must follow, not an operator."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._expects_value = True
        self._open: list[_Bracket] = []
        self._last = ""

    def read(self) -> tuple[int, str] | None:
        for found in _TOKEN.finditer(self._text):
            kind = found.lastgroup or "other"
            if kind == "space":
                continue
            message = getattr(self, f"_{kind}")(found.group(), found.start())
            if message:
                return found.start(), message
            self._last = found.group()
        return self._end()

    def _end(self) -> tuple[int, str] | None:
        if self._open:
            bracket = self._open[-1]
            return bracket.at, f"this {bracket.mark} is not closed"
        if self._expects_value:
            return len(self._text.rstrip()), f"a value must follow {self._last or 'here'}"
        return None

    def _value(self, token: str) -> str:
        if not self._expects_value:
            return f"an operator must stand before {token}"
        self._expects_value = False
        return ""

    def _operator(self, token: str) -> str:
        if self._expects_value:
            return f"a value must stand before {token}"
        self._expects_value = True
        return ""

    def _string(self, token: str, at: int) -> str:
        return self._value(token if len(token) < 40 else "the text")

    def _number(self, token: str, at: int) -> str:
        return self._value(token)

    def _word(self, token: str, at: int) -> str:
        if token.lower() in _WORD_OPERATORS and not self._expects_value:
            return self._operator(token)
        return self._value(token)

    def _binary(self, token: str, at: int) -> str:
        return self._operator(token)

    def _sign(self, token: str, at: int) -> str:
        # Before a value it is the value's sign.
        self._expects_value = True
        return ""

    def _unary(self, token: str, at: int) -> str:
        return "" if self._expects_value else f"an operator must stand before {token}"

    def _open_quote(self, token: str, at: int) -> str:
        return "this comment is not closed" if token == "/*" else "this quote is not closed"

    def _other(self, token: str, at: int) -> str:
        return f"{token!r} means nothing here"

    def _mark(self, token: str, at: int) -> str:
        if token in _CLOSES:
            return self._on_open(token, at)
        if token in _CLOSES.values():
            return self._on_close(token)
        return self._on_separator(token)

    def _on_open(self, token: str, at: int) -> str:
        # Behind a value, ( are the arguments of a function and [ is an index.
        is_record = token == "[" and self._expects_value
        if not self._expects_value and (token == "{" or (token == "(" and not self._is_name())):
            return f"an operator must stand before {token}"
        self._open.append(_Bracket(token, at, is_record))
        self._expects_value = True
        return ""

    def _is_name(self) -> bool:
        return bool(re.match(r"[A-Za-z_']", self._last))

    def _on_close(self, token: str) -> str:
        if not self._open or _CLOSES[self._open[-1].mark] != token:
            return f"nothing was opened that {token} could close"
        may_be_empty = self._last in "([{,;"
        if self._expects_value and not may_be_empty:
            return f"a value must stand before {token}"
        self._open.pop()
        self._expects_value = False
        return ""

    def _on_separator(self, token: str) -> str:
        bracket = self._open[-1] if self._open else None
        if token == "." and self._expects_value:
            return ""  # the root scope
        if token == "=" and (bracket is None or not bracket.is_record):
            return "to compare, write == or =?="
        if token == "," and (bracket is None or bracket.is_record):
            return "a comma separates arguments and the members of lists only"
        if token == ";" and (bracket is None or not bracket.is_record):
            return "; ends nothing here"
        if token == ";" and self._expects_value:
            return ""
        return self._operator(token)
