"""What RETRY ... WITH changes: commands of a description, once for every retry."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from wms.dags.description.compiled_description import Change

_AMOUNT = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([KMGT]?B?)\s*\Z", re.IGNORECASE)
_FACTOR = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?\Z")
#: A factor is applied so often that no amount stays within reason long before.
_MOST_DIGITS = 15


def changes_after(changes: Sequence[Sequence[str]], retries: int) -> dict[str, Change]:
    """What becomes of commands after so many retries, by their names in lower case."""
    made: dict[str, Change] = {}
    for name, operation, value in changes if retries else ():
        change = partial(_set, value) if operation == "=" else partial(_grown, name, value, retries)
        made[name.lower()] = change
    return made


def change_fault(operation: str, value: str) -> str:
    """What is wrong with a change, as far as it can be told without a description; or ""."""
    if operation == "*" and not _FACTOR.match(value):
        return f"not a factor: {value[:80]}"
    return ""


def _set(value: str, text: str) -> str:
    return value


def _grown(name: str, value: str, retries: int, text: str) -> str:
    """The amount in a text, multiplied once for every retry; its unit stays.

    Raises ValueError for a text that is no amount.
    """
    found = _AMOUNT.match(text)
    if found is None or not _FACTOR.match(value):
        raise ValueError(f"{name}*={value} cannot be applied to {text.strip()[:80] or 'nothing'}")
    try:
        amount = round(float(found[1]) * float(value) ** retries)
    except OverflowError:
        amount = 10**_MOST_DIGITS
    return f"{min(amount, 10**_MOST_DIGITS - 1)}{found[2]}"
