"""Parser of YAML scalars without quotes, by YAML 1.2: number, `true` or `false`, null, or text.

What YAML 1.1 programs take for something else (numbers to the base of 60, octal ones, dates, `yes`,
`no`) is refused by its form (`Ambiguous`), before its value is computed, which takes time that
grows with the square of its length. Also which texts need quotes when they are written.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

#: How a number is written that means the same to everybody, and how long it may be.
_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|[-+]?\.[0-9]+")
_MOST_DIGITS = 40
_WHOLE = re.compile(r"[-+]?[0-9]+")
_NOTHING = ("", "~", "null")
_TRUTHS = ("true", "false")
_INFINITE = re.compile(r"[-+]?\.inf|\.nan", re.IGNORECASE)
_TEXT_TAG = "tag:yaml.org,2002:str"
_TIME_TAG = "tag:yaml.org,2002:timestamp"


class Ambiguous(ValueError):
    """The word is not read alike by all programs, or is no value that could be stored."""


def read_word(word: str, tag: str) -> Any:
    """The value of a word without quotes; `tag` is what it would be by YAML 1.1.

    Raises Ambiguous with what to do.
    """
    if word.lower() in _NOTHING:
        return None
    if word.lower() in _TRUTHS:
        return word.lower() == "true"
    if _INFINITE.fullmatch(word):
        raise Ambiguous("is no number that could be stored")
    if tag == _TIME_TAG:
        raise Ambiguous("is read as a date: put it in quotes")
    if len(word) <= _MOST_DIGITS and _NUMBER.fullmatch(word):
        return _number(word)
    if tag == _TEXT_TAG:
        return word
    quoted = json.dumps(word if len(word) <= _MOST_DIGITS else f"{word[:_MOST_DIGITS]}...")
    raise Ambiguous(f"{quoted} is not read alike by all: write a plain value, or quote it")


def _number(word: str) -> int | float:
    value = int(word) if _WHOLE.fullmatch(word) else float(word)
    if isinstance(value, float) and not math.isfinite(value):
        raise Ambiguous("is no number that could be stored")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise Ambiguous("is too large")
    return value


def needs_quotes(text: str) -> bool:
    """True for a text that is a number to YAML 1.2 and none to 1.1."""
    return _NUMBER.fullmatch(text) is not None
