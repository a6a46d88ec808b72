"""Numbers as they stand in DAG files."""

from __future__ import annotations

import re

from wms.dags.language.faults import Fault

_WHOLE = re.compile(r"[+-]?[0-9]{1,10}\Z")
#: Columns of numbers are this wide.
LARGEST = 2**31 - 1


def whole(text: str, what: str, *, least: int = 0, most: int = LARGEST) -> int:
    """The whole number. Raises Fault, with the text as it is, for one out of these bounds."""
    if _WHOLE.match(text) is None or not least <= int(text) <= most:
        bounds = f"from {least} to {most}" if most < LARGEST else f"of at least {least}"
        bounds = "" if least == -LARGEST else f" {bounds}"
        raise Fault(f"{what} is a whole number{bounds}, found: {text[:80]}")
    return int(text)


def exit_code(text: str, what: str) -> int:
    """An exit code, or minus a signal's number, as a node's outcome is compared with it."""
    return whole(text, what, least=-LARGEST)
