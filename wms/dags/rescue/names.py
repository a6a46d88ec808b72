"""What rescue files are called, and files that are set aside for newer ones."""

from __future__ import annotations

from collections.abc import Sequence

from wms.core.errors import InvalidInput
from wms.jobs.content.paths import checked_path

OLD = ".old"
_GREATEST = 999


def rescue_stem(dag_files: Sequence[str]) -> str:
    """What the rescue files of these DAG files are named after."""
    return dag_files[0] if len(dag_files) == 1 else f"{dag_files[0]}_multi"


def rescue_path(dag_files: Sequence[str], number: int) -> str:
    """The rescue of this number."""
    return f"{rescue_stem(dag_files)}.rescue{number:03d}"


def rescue_fault(dag_files: Sequence[str]) -> str:
    """Why these DAG files can have no rescues, set aside too; empty where they can."""
    return aside_fault(rescue_path(dag_files, _GREATEST))


def aside_fault(path: str) -> str:
    """Why a file could not be set aside; empty where it can."""
    try:
        checked_path(path + OLD)
    except InvalidInput as error:
        return error.findings[0].message
    return ""
