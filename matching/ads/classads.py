"""ClassAds and expressions with `classad2`: parse, build, print, evaluate, rank, with limits.

Also ClassAd string literals (`quote`), plain values of an ad, and the check of nesting depth.
Importing it gives the whole process the semantics of matchmaking.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import classad2

from matching.ads.syntax_faults import find_syntax_fault

MAX_AD_BYTES = 64 * 1024
#: How deep brackets may be nested; the library gives up not far beyond.
MAX_NESTING = 100
#: Selections (`a.b`) in one ad: the library evaluates a chain of them by recursion without a bound
#: of its own, and some ten thousand end the process.
MAX_SELECTIONS = 2000
#: Operators in one expression: the library prints a chain of them by recursion, and some twenty
#: thousand end the process.
MAX_OPERATORS = 10_000

_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LINE = re.compile(r"\+?([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)\s*(\S.*)\Z")
_HINT_LENGTH = 2000
_PLACED_LENGTH = 20_000
# Brackets and selections; strings and comments are tokens too, so that what is in them does not
# count. One that is not closed is a fault that the parser tells.
_BRACKET = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|'(?:\\.|[^'\\])*(?:'|\Z)"""
    r"""|[\[({]|[\])}]|\.(?!\d)""",
    re.DOTALL,
)
_OPERATOR = re.compile(r"[-+*/%<>=!&|^~?:]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_SENTINEL = "PilotageEndOfExpression"

# In matchmaking a name without scope means the own ad's attribute or, failing that, the target's
# (what the documentation calls old ClassAd semantics, and what all of HTCondor's daemons use). The
# library switches to it, for the whole process, when its parser of the old format is first used.
classad2.parseOne("MatchmakingSemantics = true", parser=classad2.ParserType.Old)

# Strings and quoted names are left as they are, whatever digits stand in them.
_STRING_OR_LONG_FLOAT = re.compile(
    r"""(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\b(?P<float>\d\.\d{15}E[+-]\d+)\b"""
)


class AdError(ValueError):
    """Error in an ad or expression; `line` counts from 1 where there are lines.

    `column` counts from 1 in that line. For a single expression, which has lines of its own, the
    position is `line_in_text` and `column`.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        attribute: str = "",
        line_in_text: int | None = None,
        column: int | None = None,
    ) -> None:
        place = f"line {line}: " if line is not None else ""
        super().__init__(place + message)
        self.message = message
        self.line = line
        self.attribute = attribute
        self.line_in_text = line_in_text
        self.column = column


def parse_expression(text: str) -> classad2.ExprTree:
    """Parsed ClassAd expression. Raises AdError unless `text` is exactly one."""
    if len(text.encode(errors="replace")) > MAX_AD_BYTES:
        raise AdError(f"the expression is longer than {MAX_AD_BYTES} bytes")
    if not text.strip():
        raise AdError("the expression is empty")
    if "\0" in text:
        raise AdError("the expression contains a zero byte")
    check_nesting(text)
    _check_operators(text)
    # The library stops reading at the end of the first complete record; the attribute behind the
    # expression proves that the text was read to its end.
    try:
        ad = classad2.ClassAd(f"[Expression = ({text}\n); {_SENTINEL} = true]")
        bare = classad2.ClassAd(f"[Expression = {text}\n]")
    except classad2.ClassAdException:
        raise _unreadable(text) from None
    if set(ad.keys()) != {"Expression", _SENTINEL}:
        raise AdError(f"not a single ClassAd expression: {_shortened(text)}")
    return bare.lookup("Expression")


def check_nesting(text: str) -> int:
    """Raise AdError for brackets or selections that are nested too deep to be parsed safely.

    Returns the number of selections (`a.b`).
    """
    depth = selections = 0
    for match in _BRACKET.finditer(text):
        token = match.group()
        if token in "[({":
            depth += 1
        elif token in "])}":
            depth -= 1
        elif token == ".":
            selections += 1
        if depth > MAX_NESTING:
            raise AdError(f"brackets are nested more than {MAX_NESTING} deep")
        if selections > MAX_SELECTIONS:
            raise AdError(f"more than {MAX_SELECTIONS} selections (a.b)")
    return selections


def _check_operators(text: str) -> None:
    if len(text) <= MAX_OPERATORS:
        return
    # Strings become brackets for the purpose: what is in them does not count.
    bare = _BRACKET.sub("()", text)
    if sum(1 for _ in _OPERATOR.finditer(bare)) > MAX_OPERATORS:
        raise AdError(f"more than {MAX_OPERATORS} operators")


def _unreadable(text: str) -> AdError:
    """AdError for a text that the library refuses, with the position if it is known."""
    message = f"not a ClassAd expression: {_shortened(text)}{_hint(text)}"
    place = find_syntax_fault(text) if len(text) <= _PLACED_LENGTH else None
    if place is None:
        return AdError(message)
    # The hint may say the same.
    full_message = message if place.message in message else f"{message}: {place.message}"
    return AdError(full_message, line_in_text=place.line, column=place.column)


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _hint(text: str) -> str:
    if len(text) > _HINT_LENGTH:
        return ""
    bare = re.sub(r'"(\\.|[^"\\])*"', "", text)
    if '"' in bare:
        return " (a quote is not closed)"
    opened, closed = bare.count("("), bare.count(")")
    if opened != closed:
        return f" ({opened} opening and {closed} closing parentheses)"
    if re.search(r"(?<![=!<>?])=(?![=?!])", bare):
        return " (to compare, write == or =?=)"
    return ""


def parse_lines(text: str) -> dict[str, str]:
    """Attributes of an ad in the old format, one `Name = expression` a line, in their order.

    Empty lines and lines that begin with `#` are skipped; a leading `+` is allowed. Raises AdError
    with the line of the first fault. A repeated attribute is a fault; names are case-insensitive.
    """
    if len(text.encode(errors="replace")) > MAX_AD_BYTES:
        raise AdError(f"the ad is larger than {MAX_AD_BYTES} bytes")
    attributes: dict[str, str] = {}
    seen: dict[str, int] = {}
    for number, line in enumerate(_LINE_END.split(text), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line.strip())
        if match is None:
            raise AdError(
                f"expected `Name = expression`, found: {_shortened(line.strip())}", line=number
            )
        name, expression = match.groups()
        if name.lower() in seen:
            raise AdError(f"{name} is given twice, first in line {seen[name.lower()]}", line=number)
        try:
            parse_expression(expression)
        except AdError as error:
            # The expression of an attribute is one line; the column is that in the ad.
            start = line.rindex(expression) if expression in line else 0
            column = None if error.column is None else start + error.column
            raise AdError(
                f"{name}: {error.message}", line=number, attribute=name, column=column
            ) from None
        seen[name.lower()] = number
        attributes[name] = expression
    return attributes


def read_lines(text: str) -> classad2.ClassAd:
    """Ad from a text of `render_lines`, in a fraction of the time that other texts take.

    Raises AdError where the text is something else.
    """
    check_nesting(text)
    try:
        ad = classad2.parseOne(text, parser=classad2.ParserType.Old)
    except classad2.ClassAdException:
        ad = classad2.ClassAd()
    # The library stops at a line that is none of an ad.
    return ad if len(ad) == len(text.splitlines()) else build_ad(parse_lines(text))


def build_ad(
    attributes: Mapping[str, str], values: Mapping[str, Any] | None = None
) -> classad2.ClassAd:
    """Ad from attribute expressions and plain values; values win where both define a name."""
    ad = classad2.ClassAd()
    for name, expression in attributes.items():
        if not _ATTRIBUTE.match(name):
            raise AdError(f"{name!r} is not an attribute name", attribute=name)
        ad[name] = parse_expression(expression)
    for name, value in (values or {}).items():
        ad[name] = value
    return ad


def render_lines(ad: classad2.ClassAd) -> str:
    """Ad in the old format, one attribute a line, in alphabetical order."""
    return "\n".join(
        f"{name} = {_plain(ad.lookup(name))}" for name in sorted(ad.keys(), key=str.lower)
    )


def canonical_text(text: str) -> str:
    """Expression as the library prints it, on one line with uniform spaces.

    Raises AdError unless the text is exactly one ClassAd expression.
    """
    return _plain(parse_expression(text))


def _plain(expression: Any) -> str:
    """Text of an expression, floats in their short form."""
    # On one line, which `str` is not when there are lists or nested ads.
    text = repr(expression).strip()
    return _STRING_OR_LONG_FLOAT.sub(_shortened_float, text)


def _shortened_float(match: re.Match[str]) -> str:
    return repr(float(match["float"])) if match["float"] else match.group()


def literal_values(ad: classad2.ClassAd) -> dict[str, str | int | float | bool]:
    """Attributes that evaluate, within the ad alone, to a string, a number or a boolean."""
    values: dict[str, str | int | float | bool] = {}
    for name in list(ad):
        value = evaluate(ad.lookup(name), ad)
        # `Value` (undefined, error) is an integer enumeration, so it must be told apart first.
        if not isinstance(value, classad2.Value) and isinstance(value, str | bool | int | float):
            values[name] = value
    return values


def evaluate(
    expression: classad2.ExprTree, ad: classad2.ClassAd, target: classad2.ClassAd | None = None
) -> Any:
    """Value of an expression with `ad` as MY and `target` as TARGET; Error if evaluation fails.

    The library gives up on expressions that are nested too deeply, and cannot return strings that
    are not UTF-8. Infinite numbers and NaN count as errors, too.
    """
    try:
        value = expression.eval(ad, target)
    except (classad2.ClassAdException, UnicodeDecodeError):
        return classad2.Value.Error
    if isinstance(value, float) and not math.isfinite(value):
        return classad2.Value.Error
    return value


def attribute_value(
    ad: classad2.ClassAd, name: str, default: Any, target: classad2.ClassAd | None = None
) -> Any:
    """Value of an attribute with `target` as TARGET; `default` when the ad lacks it."""
    try:
        expression = ad.lookup(name)
    except KeyError:
        return default
    return evaluate(expression, ad, target)


def rank_value(ad: classad2.ClassAd, target: classad2.ClassAd) -> float:
    """`Rank` of `ad` for `target`; 0.0 when it is missing or not a number, as in HTCondor."""
    return as_rank(attribute_value(ad, "Rank", 0.0, target))


def as_rank(value: Any) -> float:
    """Rank as a number; values that are not numbers count 0.0."""
    # `Value` (undefined, error) is an integer enumeration, so it must be told apart.
    is_number = isinstance(value, bool | int | float) and not isinstance(value, classad2.Value)
    return float(value) if is_number else 0.0


def quote(text: str) -> str:
    """`text` as a ClassAd string literal."""
    quoted: str = classad2.quote(text)
    return quoted
