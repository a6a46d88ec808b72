"""Analysis of a ClassAd expression's text: attributes it refers to, dependencies, conjuncts.

Dependencies are attributes of its own ad, directly or through others, and names that are looked up
in the other ad.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from matching.ads.classads import parse_expression

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\])*")|'(?P<quoted>(?:\\.|[^'\\])*)'"""
    r"""|(?P<number>\d[\w.]*(?:(?<=[eE])[+-]\d+)?)|(?P<word>[A-Za-z_]\w*)|(?P<other>&&|\|\||=\?=|=!=|[=!<>]=|\S)""",
    re.DOTALL,
)
_LITERALS = frozenset({"true", "false", "undefined", "error", "is", "isnt"})
_SCOPES = frozenset({"my", "target"})
_STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
#: A name that no nested ad defines, numbers in scientific notation among them.
_NAME = re.compile(r"[A-Za-z_]\w*\b(?!\s*=(?![=?!]))")
_LONGEST_REMEMBERED = 1000
_COMMENT = re.compile(r"//|/\*")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True, slots=True)
class Reference:
    """One use of an attribute: its name in lower case; `scope` is `my`, `target` or empty."""

    scope: str
    name: str


@dataclass(frozen=True, slots=True)
class Reach:
    """Dependencies of an expression: attributes of its own ad, and names looked up in the other.

    Both sets are in lower case and transitive: they include what the own attributes refer to.
    """

    own: frozenset[str]
    foreign: frozenset[str]


def references(text: str) -> list[Reference]:
    """Attributes that an expression uses, in their order, once for each use.

    Of `a.b` both names count, unless `a` is a scope: the text does not show which of them is an
    attribute of the ad. Names of functions are left out, and those that a nested ad defines.
    """
    return list(_remembered(text) if len(text) <= _LONGEST_REMEMBERED else _found(text))


def _found(text: str) -> tuple[Reference, ...]:
    # Most attributes are values, some of them long: whether they have names is known at once.
    if "'" not in text and not _NAME.search(_STRING.sub('""', text)):
        return ()
    tokens = [token for token in _TOKEN.finditer(text) if not token["comment"]]
    found: list[Reference] = []
    for place, token in enumerate(tokens):
        name = token["word"] or token["quoted"]
        if not name or (token["word"] and name.lower() in _LITERALS):
            continue
        following = _symbol(tokens, place + 1)
        is_scope = name.lower() in _SCOPES and following == "."
        if following == "=" or (token["word"] and (following == "(" or is_scope)):
            continue
        found.append(Reference(_scope(tokens, place), name.lower()))
    return tuple(found)


# Sites and DAGs have most of their expressions in common.
_remembered = lru_cache(maxsize=4096)(_found)


def nested_names(text: str) -> frozenset[str]:
    """Names that the nested ads in an expression define, in lower case."""
    tokens = [token for token in _TOKEN.finditer(text) if not token["comment"]]
    names = (token["word"] or token["quoted"] or "" for token in tokens)
    return frozenset(
        name.lower() for at, name in enumerate(names) if name and _symbol(tokens, at + 1) == "="
    )


def _symbol(tokens: list[re.Match[str]], place: int) -> str:
    return tokens[place]["other"] or "" if 0 <= place < len(tokens) else ""


def _scope(tokens: list[re.Match[str]], place: int) -> str:
    if place < 2 or _symbol(tokens, place - 1) != ".":
        return ""
    before = (tokens[place - 2]["word"] or "").lower()
    return before if before in _SCOPES else ""


def reach(texts: Iterable[str], definitions: Mapping[str, str]) -> Reach:
    """Dependencies of expressions of an ad; `definitions` are its attributes by lower-case name.

    A name without scope is the own attribute if there is one, else the other ad's.
    """
    own: set[str] = set()
    foreign: set[str] = set()
    pending = [reference for text in texts for reference in references(text)]
    while pending:
        reference = pending.pop()
        if reference.scope == "target":
            foreign.add(reference.name)
        elif reference.name not in definitions:
            if not reference.scope:
                foreign.add(reference.name)
        elif reference.name not in own:
            own.add(reference.name)
            pending += references(definitions[reference.name])
    return Reach(frozenset(own), frozenset(foreign))


def split_conjuncts(text: str) -> list[str]:
    """Parts of `a && b && c`, without needless parentheses; a single part for other expressions.

    The expression is true exactly if every part counts as true in a conjunction.
    """
    text = _stripped(text)
    cuts: list[tuple[int, int]] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        symbol = token["other"]
        if symbol is None:
            continue
        if symbol in _OPENING:
            depth += 1
        elif symbol in _CLOSING:
            depth -= 1
        elif depth == 0 and symbol in {"||", "?"}:
            return [text]
        elif depth == 0 and symbol == "&&":
            cuts.append(token.span())
    if not cuts:
        return [text]
    starts = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(text)]
    parts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return [conjunct for part in parts for conjunct in split_conjuncts(part)]


def _stripped(text: str) -> str:
    """The text without comments, outer blanks and outer parentheses."""
    if _COMMENT.search(text):
        text = str(parse_expression(text))
    text = text.strip()
    while text.startswith("(") and _closing_place(text) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closing_place(text: str) -> int:
    """Position of the parenthesis that closes the one at the start of the text."""
    depth = 0
    for token in _TOKEN.finditer(text):
        symbol = token["other"]
        if symbol in _OPENING:
            depth += 1
        elif symbol in _CLOSING:
            depth -= 1
            if depth == 0:
                return token.start()
    return -1
