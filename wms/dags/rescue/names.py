"""Names of rescue files and of `.old` files, and whether DAG files have names that allow them."""

from __future__ import annotations

from collections.abc import Sequence

from wms.core.errors import InvalidInput
from wms.jobs.content.paths import checked_path

OLD = ".old"
_GREATEST = 999


def rescue_stem(dag_files: Sequence[str]) -> str:
    """Stem of the names of rescue files of these DAG files."""
    return dag_files[0] if len(dag_files) == 1 else f"{dag_files[0]}_multi"


def rescue_path(dag_files: Sequence[str], number: int) -> str:
    """Path of the rescue of this number."""
    return f"{rescue_stem(dag_files)}.rescue{number:03d}"


def rescue_fault(dag_files: Sequence[str]) -> str:
    """Reason why these DAG files can have no rescues, or no `.old` ones; empty where they can."""
    return aside_fault(rescue_path(dag_files, _GREATEST))


def aside_fault(path: str) -> str:
    """Reason why a file could not be renamed to `.old`; empty where it can."""
    try:
        checked_path(path + OLD)
    except InvalidInput as error:
        return error.findings[0].message
    return ""
