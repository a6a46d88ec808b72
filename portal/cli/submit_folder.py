"""Directory with DAG files, as a submission would send it, for commands that read it from disk.

Also the command-line options that name it and from where its file names are looked up.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from django.core.management.base import CommandError, CommandParser

from wms.core.errors import InvalidInput
from wms.dags.language.origin import Origin, read_origin


class SubmitFolder(NamedTuple):
    """Files that a submission would send, and its parameters."""

    top: Path
    origin: Origin

    @property
    def said(self) -> str:
        """Parameters of the equivalent submission as text; empty for none."""
        origin = self.origin
        parts = [("directory", origin.directory), ("root", origin.root)]
        return " ".join(
            [
                *(f"{name}={value}" for name, value in parts if value),
                *(["use_dag_dir=true"] if origin.uses_dag_dir else []),
            ]
        )


def add_folder_arguments(parser: CommandParser) -> None:
    """Add the options that `submit_folder` reads."""
    parser.add_argument(
        "--directory",
        metavar="DIR",
        help="where condor_submit_dag would be called: names are looked up from there; "
        "by default the folder of the first DAG file",
    )
    parser.add_argument(
        "--root",
        metavar="DIR",
        help="the folder that is sent, with that directory in it; absolute names below are names "
        "in it; by default the directory itself",
    )
    parser.add_argument(
        "--usedagdir",
        action="store_true",
        help="look up the names in each DAG file from its own folder",
    )


def submit_folder(first: Path, options: dict[str, Any]) -> SubmitFolder:
    """Directory that the options name for this first DAG file. Raises CommandError, with code 2."""
    given, root, uses_dag_dir = options["directory"], options["root"], options["usedagdir"]
    directory = given or first.parent
    top = Path(root or directory)
    below = "" if uses_dag_dir and not given else os.path.relpath(directory, top)
    try:
        origin = read_origin(
            below, os.path.abspath(root) if root else "", uses_dag_dir=uses_dag_dir
        )
    except InvalidInput as error:
        faults = "; ".join(f"{each.field}: {each.message}" for each in error.findings)
        raise CommandError(faults, returncode=2) from None
    return SubmitFolder(top, origin)
