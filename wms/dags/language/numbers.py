"""Parsing of whole numbers and exit codes in DAG files."""

from __future__ import annotations

import re

from wms.dags.language.faults import Fault

_WHOLE = re.compile(r"[+-]?[0-9]{1,10}\Z")
#: Columns of numbers are this wide.
LARGEST = 2**31 - 1


def whole(text: str, what: str, *, least: int = 0, most: int = LARGEST) -> int:
    """Whole number within these limits. Raises Fault, with the text, for anything else."""
    if _WHOLE.match(text) is None or not least <= int(text) <= most:
        limits = f"from {least} to {most}" if most < LARGEST else f"of at least {least}"
        limits = "" if least == -LARGEST else f" {limits}"
        raise Fault(f"{what} is a whole number{limits}, found: {text[:80]}")
    return int(text)


def exit_code(text: str, what: str) -> int:
    """Exit code of a node, or the negative number of a signal. Raises Fault."""
    return whole(text, what, least=-LARGEST)
