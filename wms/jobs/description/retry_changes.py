"""Changes of submit commands at each retry of a node: `RETRY ... WITH name=value`, `name*=factor`.

Also the check of such a change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from wms.jobs.description.renderer_inputs import Change

_AMOUNT = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([KMGT]?B?)\s*\Z", re.IGNORECASE)
_FACTOR = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?\Z")
#: A factor is applied so often that no amount stays within reason long before.
_MOST_DIGITS = 15


def changes_for_retry(changes: Sequence[Sequence[str]], retries: int) -> dict[str, Change]:
    """Change of each command after this many retries, by lower-case name."""
    by_command: dict[str, Change] = {}
    for name, operation, value in changes if retries else ():
        change = (
            partial(_set, value) if operation == "=" else partial(_multiplied, name, value, retries)
        )
        by_command[name.lower()] = change
    return by_command


def change_fault(operation: str, value: str) -> str:
    """Fault of a change that is visible without the description; or ""."""
    if operation == "*" and not _FACTOR.match(value):
        return f"not a factor: {value[:80]}"
    return ""


def _set(value: str, text: str) -> str:
    return value


def _multiplied(name: str, value: str, retries: int, text: str) -> str:
    """Amount in a text, multiplied once for every retry; its unit stays.

    Raises ValueError for a text that is no amount.
    """
    match = _AMOUNT.match(text)
    if match is None or not _FACTOR.match(value):
        raise ValueError(f"{name}*={value} cannot be applied to {text.strip()[:80] or 'nothing'}")
    try:
        amount = round(float(match[1]) * float(value) ** retries)
    except OverflowError:
        amount = 10**_MOST_DIGITS
    return f"{min(amount, 10**_MOST_DIGITS - 1)}{match[2]}"
