"""Parser of ads in any format: old `Name = expression` lines, new `[ ... ]`, and JSON.

Returns expressions by attribute, in the syntax that `parse_expression` reads. Nesting is bounded
before anything is parsed. A text of several new-format ads is split into these.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from matching.ads.classads import (
    MAX_AD_BYTES,
    AdError,
    check_nesting,
    parse_expression,
    parse_lines,
    quote,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)\s*(\S.*)\Z", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    | (?P<blank>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<open>[\[({])
    | (?P<close>[\])}])
    | (?P<end>;)
    | (?P<unclosed>["']|/\*)
    | (?P<word>[^\s"'/\[\](){};]+|/)""",
    re.DOTALL | re.VERBOSE,
)
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_LEADING = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_JSON_LIST = re.compile(r"\[\s*\{")
# How HTCondor writes an expression into JSON. The slash need not be escaped: programs that read
# and write JSON again drop the backslash.
_JSON_EXPRESSION = re.compile(r"/Expr\((.*)\)/\Z", re.DOTALL)
# In the old format a backslash means itself, unless a quote follows that does not end the line
# (HTCondor's rule).
_LONE_BACKSLASH = re.compile(r'\\(?!"(?![ \t]*(?:[\r\n]|\Z)))')


def parse_ad(text: str) -> dict[str, str]:
    """Expressions of exactly one ad by attribute, in their order, from any of the formats.

    Raises AdError with the line or the attribute of the first fault. A repeated attribute is a
    fault; attribute names are case-insensitive.
    """
    if len(text.encode(errors="replace")) > MAX_AD_BYTES:
        raise AdError(f"the ad is larger than {MAX_AD_BYTES} bytes")
    if not text.strip():
        raise AdError("the ad is empty")
    start = _start(text)
    if text.startswith("{", start) or _JSON_LIST.match(text, start):
        return _parse_json(text)
    if text.startswith("[", start):
        return _parse_new(text)
    return _parse_old(text)


def split_ads(text: str) -> list[tuple[int, str]]:
    """The `[ ... ]` ads of a text one after the other, each with the line at which it begins.

    A text that begins otherwise is one ad. Raises AdError with the line of text between ads, and of
    an ad that has no end.
    """
    if not text.startswith("[", _start(text)) or _JSON_LIST.match(text, _start(text)):
        return [(1, text)]
    ads: list[tuple[int, str]] = []
    depth, begins_at, first_line, line = 0, 0, 1, 1
    for match in _TOKEN.finditer(text):
        kind, token = str(match.lastgroup), match.group()
        if not depth:
            _require_ad(kind, token, line)
            begins_at, first_line = match.start(), line
        depth += _DEPTHS.get(kind, 0)
        if kind == "close" and not depth:
            ads.append((first_line, text[begins_at : match.end()]))
        line += token.count("\n")
    if depth:
        raise AdError("the ad has no end", line=first_line)
    return ads


_DEPTHS = {"open": 1, "close": -1}


def _require_ad(kind: str, token: str, line: int) -> None:
    """Raise AdError for what is neither the beginning of an ad nor between ads."""
    if kind != "blank" and token not in ("[", ";"):
        raise AdError(f"expected `[` of an ad, found: {_short(token)}", line=line)


def _start(text: str) -> int:
    match = _LEADING.match(text)
    return match.end() if match else 0


def _parse_old(text: str) -> dict[str, str]:
    return parse_lines(_LONE_BACKSLASH.sub(r"\\\\", text))


def _parse_new(text: str) -> dict[str, str]:
    check_nesting(text)
    attributes: dict[str, str] = {}
    seen: dict[str, int] = {}
    for line, statement in _statements(text):
        match = _ASSIGNMENT.match(statement)
        if match is None:
            raise AdError(f"expected `Name = expression`, found: {_short(statement)}", line=line)
        name, expression = match.groups()
        if name.lower() in seen:
            raise AdError(f"{name} is given twice, first in line {seen[name.lower()]}", line=line)
        seen[name.lower()] = line
        attributes[name] = _checked(name, expression, line=line)
    return attributes


def _checked(name: str, expression: str, *, line: int | None = None) -> str:
    try:
        parse_expression(expression)
    except AdError as error:
        raise AdError(f"{name}: {error.message}", line=line, attribute=name) from None
    return expression


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _tokens(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, kind and text of each token; comments and white space become blanks."""
    line = 1
    for match in _TOKEN.finditer(text):
        kind, token = str(match.lastgroup), match.group()
        if kind == "unclosed":
            what = "a comment" if token == "/*" else "a quote"
            raise AdError(f"{what} is not closed", line=line)
        yield line, kind, " " if kind == "blank" else _on_one_line(token)
        line += token.count("\n")


def _on_one_line(token: str) -> str:
    """Token without line breaks: stored ads have one attribute a line."""
    return token.replace("\r", "\\r").replace("\n", "\\n")


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Statements between the semicolons of one `[ ... ]`, one line each, with line numbers."""
    expected: list[str] = []
    parts: list[str] = []
    first_line, is_over = 1, False
    for line, kind, token in _tokens(text):
        if is_over and kind != "blank":
            what = "a second ad begins" if token == "[" else "there is text"
            raise AdError(f"{what} behind the end of the ad; send one ad", line=line)
        is_outer = _bracket(expected, kind, token, line)
        is_over = is_over or (kind == "close" and is_outer)
        if is_over or (kind == "end" and len(expected) == 1):
            yield from _statement(first_line, parts)
            parts = []
        elif not is_outer and (parts or kind != "blank"):
            first_line = first_line if parts else line
            parts.append(token)
    if expected:
        raise AdError(f"the ad ends without {expected[-1]!r}", line=text.count("\n") + 1)


def _bracket(expected: list[str], kind: str, token: str, line: int) -> bool:
    """Record an opening or closing bracket; return whether the token is one of the outermost."""
    if kind == "open":
        expected.append(_CLOSING[token])
        return len(expected) == 1
    if kind == "close" and (not expected or expected.pop() != token):
        raise AdError(f"{token!r} closes nothing that is open", line=line)
    return not expected


def _statement(line: int, parts: list[str]) -> Iterator[tuple[int, str]]:
    statement = "".join(parts).strip()
    if statement:
        yield line, statement


def _parse_json(text: str) -> dict[str, str]:
    check_nesting(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_number,
            parse_int=_integer,
            parse_float=_real,
        )
    except json.JSONDecodeError as error:
        raise AdError(f"not JSON: {error.msg}", line=error.lineno) from None
    if isinstance(value, list):
        if len(value) != 1:
            raise AdError(f"the list holds {len(value)} ads; send one ad")
        value = value[0]
    if not isinstance(value, Mapping):
        raise AdError("expected a JSON object of attributes")
    return {name: _checked(name, _expression(name, inner)) for name, inner in value.items()}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, str] = {}
    for name, _ in pairs:
        if not _NAME.match(name):
            raise AdError(f"{_short(ascii(name))} is not an attribute name")
        if name.lower() in seen:
            raise AdError(f"{name} is given twice", attribute=name)
        seen[name.lower()] = name
    return dict(pairs)


def _no_number(word: str) -> NoReturn:
    raise AdError(f"{word} is not a value of an ad")


def _integer(digits: str) -> int:
    # 19 digits and a sign are the most that 64 bits hold; Python refuses to read very long ones.
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
        raise AdError(f"{_short(digits)} does not fit into 64 bits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise AdError(f"{_short(digits)} is too large for a real number")
    return value


def _expression(name: str, value: Any) -> str:
    """A JSON value as a ClassAd expression."""
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(name, value)
    if isinstance(value, list):
        return "{ " + ", ".join(_expression(name, inner) for inner in value) + " }"
    pairs = (f"{inner} = {_expression(name, each)}" for inner, each in value.items())
    return "[ " + "; ".join(pairs) + " ]"


def _text(name: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise AdError(f"{name}: half of a surrogate pair in a text", attribute=name) from None
    if "\0" in value:
        raise AdError(f"{name}: a zero byte in a text", attribute=name)
    match = _JSON_EXPRESSION.match(value)
    if match is None:
        return quote(value)
    expression = "".join(token for _, _, token in _tokens(match[1])).strip()
    return _checked(name, expression)
