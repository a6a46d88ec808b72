"""Limit on the cost of evaluating a ClassAd, estimated from its text before evaluation.

Also refused: attributes that refer to themselves or to whole ads, nested ads with references, and
functions whose cost nobody can foresee (such as `eval`). ClassAds have no loops, but an attribute
that uses another one ten times, which uses a third ten times, and so on, makes short text into
huge values. The cost of an attribute is the length of its expression plus the costs of the
attributes it refers to, once for each use. Some functions compare or join every element of one
argument with every element of another: the cost of their arguments is squared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matching.ads.classads import MAX_SELECTIONS, AdError, check_nesting, parse_expression

#: What an attribute may cost, in characters that its evaluation can touch.
MAX_COST = 128 * 1024
#: So much more it may cost if its cost is a product: steps, of which each is quick.
_PRODUCT_FACTOR = 8
#: How many attributes may lead to each other in a row.
MAX_REFERENCES = 100
#: What a reference to an attribute of the other ad is taken to cost.
_FOREIGN_COST = 256
#: A match of a pattern can go on for 0.1 s before the library gives it up: eight are too many yet.
_PATTERN_COST = MAX_COST // 8 - 1024

# Told in an ad as the library prints it: without comments, names in quotes only where they must be.
_TOKEN = re.compile(
    r"""(?P<string>"(?:\\.|[^"\\])*")|'(?P<quoted>(?:\\.|[^'\\])*)'"""
    r"""|(?P<number>\d[\w.]*)|(?P<word>[A-Za-z_]\w*)|(?P<other>[=!<>?]+|\S)"""
)
_CONSTANTS = frozenset({"true", "false", "undefined", "error"})
_SCOPES = frozenset({"my", "target"})
_WORDS = _CONSTANTS | _SCOPES | {"is", "isnt"}
#: What the library knows besides attributes: whole ads, and the outcome of the match itself. By
#: way of these, `self["A"]`, an attribute reaches itself unseen, and that ends the process.
_WHOLE_ADS = frozenset(
    {
        "ad", "lctx", "left", "leftmatchesright", "leftrankvalue", "other", "parent", "rctx",
        "right", "rightmatchesleft", "rightrankvalue", "root", "self", "symmetricmatch",
        "toplevel",
    }
)  # fmt: skip
#: They refer back to the ad that asks, so that nobody knows what they cost.
_MATCHING = frozenset({"requirements", "rank"})
_PATTERNS = frozenset({"regexp"})
_PRODUCTS = frozenset(
    {
        "allcompare", "anycompare", "countmatches", "evalineachcontext", "join",
        "stringlistisubsetmatch", "stringlistsubsetmatch", "stringlistsintersect",
    }
)  # fmt: skip
#: What `eval` refers to, or how often these match a pattern, cannot be known beforehand; and an
#: account's home on this host is nobody's business.
_REFUSED = frozenset(
    {
        "eval", "regexpmember", "regexps", "replace", "replaceall", "stringlistregexpmember",
        "unresolved", "userhome",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Use:
    """Attributes and functions that an expression uses, once for each use; None is another ad's.

    `argument_references`, `argument_length` and `argument_patterns` are of arguments of products.
    """

    references: tuple[str | None, ...]
    length: int
    patterns: int
    products: int = 0
    argument_references: tuple[str | None, ...] = ()
    argument_length: int = 0
    argument_patterns: int = 0


@dataclass(frozen=True, slots=True)
class _Cost:
    """Cost of an attribute, and the length of the longest chain of attributes behind it."""

    steps: int
    depth: int


def check_cost(attributes: Mapping[str, str], *, most_steps: int = MAX_COST) -> None:
    """Raise AdError, with the attribute, for an ad that costs too much or refers to itself.

    No attribute may cost more than `most_steps`. Functions of unknown cost are refused, and so are
    nested ads that refer to anything.
    """
    if sum(check_nesting(text) for text in attributes.values()) > MAX_SELECTIONS:
        raise AdError(f"the ad has more than {MAX_SELECTIONS} selections (a.b)")
    names = {name.lower(): name for name in attributes}
    for name in names.keys() & (_SCOPES | _WHOLE_ADS):
        raise AdError(f"{names[name]} cannot be the name of an attribute", attribute=names[name])
    uses: dict[str, _Use] = {}
    for name, text in attributes.items():
        try:
            uses[name] = _use(text, names)
        except AdError as error:
            raise AdError(f"{name}: {error.message}", attribute=name) from None
    costs: dict[str, _Cost] = {}
    for name in attributes:
        _cost(name, uses, costs, (), most_steps)


def _use(text: str, names: Mapping[str, str]) -> _Use:
    plain = repr(parse_expression(text))
    tokens = list(_TOKEN.finditer(plain))
    spans = _product_spans(tokens)
    references: list[str | None] = []
    arguments: list[str | None] = []
    calls: list[str] = []
    for place, token in enumerate(tokens):
        name, symbol = _name(token), _text(tokens, place + 1)
        if not name or symbol == "=":
            continue
        _check_scope(tokens, place, is_own=name in names)
        if token["word"] and symbol == "(":
            calls.append(name)
        elif token["quoted"] or name not in _WORDS:
            is_argument = any(place in span for span in spans)
            (arguments if is_argument else references).append(names.get(name))
    for call in calls:
        if call in _REFUSED:
            raise AdError(f"{call} cannot be used")
    _check_nested_ads(tokens)
    texts = [plain[tokens[span.start].start() : tokens[span.stop - 1].end()] for span in spans]
    patterns = [place for place, token in enumerate(tokens) if _name(token) in _PATTERNS]
    of_arguments = sum(any(place in span for span in spans) for place in patterns)
    return _Use(
        references=tuple(references),
        length=max(len(text), len(plain)),
        patterns=len(patterns) - of_arguments,
        products=sum(call in _PRODUCTS for call in calls),
        argument_references=tuple(arguments),
        argument_length=sum(map(len, texts)),
        argument_patterns=of_arguments,
    )


def _product_spans(tokens: Sequence[re.Match[str]]) -> list[range]:
    """Places of the tokens of each call whose cost is a product, its arguments included.

    Of calls within such a call there is none of their own.
    """
    spans: list[range] = []
    for place, token in enumerate(tokens):
        is_call = bool(token["word"]) and _text(tokens, place + 1) == "("
        if is_call and _name(token) in _PRODUCTS and not any(place in span for span in spans):
            spans.append(range(place, _closing(tokens, place + 1) + 1))
    return spans


def _closing(tokens: Sequence[re.Match[str]], opening: int) -> int:
    """Place of the parenthesis that closes the one at a place; the last one where none does."""
    depth = 0
    for place in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place].group(), 0)
        if not depth:
            return place
    return len(tokens) - 1


def _check_scope(tokens: Sequence[re.Match[str]], place: int, *, is_own: bool) -> None:
    """Raise AdError for a whole ad as a value, and for Requirements or Rank of the other ad."""
    name, is_selected = _name(tokens[place]), _text(tokens, place - 1) == "."
    is_call = _text(tokens, place + 1) == "("
    is_scope = _text(tokens, place + 1) == "." and not is_selected
    if (name in _WHOLE_ADS and not is_call) or (name in _SCOPES and not is_scope):
        raise AdError(f"{name} cannot be used as a value: write MY.Name or TARGET.Name")
    if name in _MATCHING:
        scope = _name(tokens[place - 2]) if is_selected and place > 1 else ""
        if scope == "target" or (not is_own and scope != "my"):
            raise AdError(f"the {name} of the other ad cannot be used")


def _text(tokens: Sequence[re.Match[str]], place: int) -> str:
    return tokens[place].group() if 0 <= place < len(tokens) else ""


def _check_nested_ads(tokens: Sequence[re.Match[str]]) -> None:
    """Raise AdError when a nested ad, `[a = 1; b = 2]`, refers to anything or calls a function."""
    is_ad = [False]
    for place, token in enumerate(tokens):
        symbol, name = _text(tokens, place + 1), _name(token)
        if token["other"] == "[":
            is_ad.append(False)
        elif token["other"] == "]":
            is_ad.pop()
        elif name and symbol == "=":
            is_ad[-1] = True
        elif name and any(is_ad) and (token["quoted"] or name not in _CONSTANTS):
            raise AdError(f"a nested ad can only have plain values: {name}")


def _name(token: re.Match[str]) -> str:
    """Lower-case name of a name token; empty for other tokens."""
    if "\\" in (token["quoted"] or ""):
        raise AdError(f"the name {token.group()} cannot be used")
    return (token["word"] or token["quoted"] or "").lower()


def _cost(
    name: str,
    uses: Mapping[str, _Use],
    costs: dict[str, _Cost],
    path: tuple[str, ...],
    most_steps: int,
) -> _Cost:
    if name in path:
        circle = " -> ".join([*path[path.index(name) :], name])
        raise AdError(f"attributes refer to each other in a circle: {circle}", attribute=name)
    if name in costs:
        return costs[name]
    _check_depth(name, len(path))
    use = uses[name]
    steps, depth = use.length + _PATTERN_COST * use.patterns, 0
    of_arguments = use.argument_length + _PATTERN_COST * use.argument_patterns
    for reference in use.references:
        found = _reference_cost(reference, name, uses, costs, path, most_steps)
        steps, depth = steps + found.steps, max(depth, found.depth)
        _check(name, steps, most_steps)
    for reference in use.argument_references:
        found = _reference_cost(reference, name, uses, costs, path, most_steps)
        of_arguments, depth = of_arguments + found.steps, max(depth, found.depth)
        _check(name, steps + of_arguments, most_steps)
    _check_depth(name, depth)
    _check(name, steps, most_steps)
    if use.products:
        steps += of_arguments ** (1 + use.products)
        _check(name, steps, _PRODUCT_FACTOR * most_steps)
    costs[name] = _Cost(steps, depth)
    return costs[name]


def _reference_cost(
    reference: str | None,
    name: str,
    uses: Mapping[str, _Use],
    costs: dict[str, _Cost],
    path: tuple[str, ...],
    most_steps: int,
) -> _Cost:
    """Cost of one use of another attribute, with the length of the chain that it makes."""
    if reference is None:
        return _Cost(_FOREIGN_COST, 0)
    found = _cost(reference, uses, costs, (*path, name), most_steps)
    return _Cost(found.steps, found.depth + 1)


def _check_depth(name: str, depth: int) -> None:
    if depth > MAX_REFERENCES:
        message = f"{name}: more than {MAX_REFERENCES} attributes refer to each other in a row"
        raise AdError(message, attribute=name)


def _check(name: str, steps: int, limit: int) -> None:
    if steps > limit:
        message = f"{name}: its evaluation could become too large or take too long"
        raise AdError(message, attribute=name)
