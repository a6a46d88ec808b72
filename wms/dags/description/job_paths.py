"""Where the files of a node's jobs lie in the workspace, once all macros are filled in."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from wms.core.errors import PilotageError
from wms.dags.description.compiled_description import CannotRender
from wms.dags.description.job_fields import checked_executable
from wms.jobs.content.paths import checked_path, path_in
from wms.jobs.specs import CLUSTER_MARK

#: The fields that name files of the job's directory, and their commands.
_FILES = {
    "input_files": "transfer_input_files",
    "output_files": "transfer_output_files",
    "stdout_name": "output",
    "stderr_name": "error",
}
_NAMED = ("directory", "executable", *_FILES)
_LONGEST_CLUSTER = str(2**63 - 1)


class JobPlaces:
    """Finds the places of one job after the other; what the last one named is remembered."""

    def __init__(self) -> None:
        self._last: tuple[object, Mapping[str, str]] = None, {}

    def placed(
        self, fields: Mapping[str, Any], below: str, *, mentions_cluster: bool = False
    ) -> Mapping[str, str]:
        """The directory and the executable of a job as they are called from the workspace's top.

        `below` is the node's directory; fields that are not known yet are missing. Raises
        CannotRender where a file of the job can have no place, the number of its cluster included.
        """
        named = {name: fields.get(name, "") for name in _NAMED}
        if not (below or named["directory"] or mentions_cluster):
            # Each by itself was looked at when it was read.
            return {}
        known, placed = self._last
        if known != (below, named):
            placed = _placed(named, below)
            self._last = (below, named), placed
        return placed


def _placed(named: Mapping[str, Any], below: str) -> Mapping[str, str]:
    placed = {"directory": posixpath.join(below, named["directory"]).rstrip("/")}
    if placed["directory"]:
        with _told_of("initialdir"):
            placed["directory"] = checked_path(placed["directory"], field="initialdir")
            checked_path(_at_longest(placed["directory"]), field="initialdir")
    if named["executable"]:
        with _told_of("executable"):
            placed["executable"] = checked_executable(named["executable"], below)
            checked_executable(_at_longest(placed["executable"]))
    directory = _at_longest(placed["directory"])
    for field, command in _FILES.items():
        names = named[field]
        with _told_of(command):
            for name in filter(None, (names,) if isinstance(names, str) else names):
                path_in(directory, _at_longest(name), field=command)
    return placed


def _at_longest(name: str) -> str:
    """The name with a number of the cluster of as many digits as one may have."""
    return name.replace(CLUSTER_MARK, _LONGEST_CLUSTER)


@contextmanager
def _told_of(command: str) -> Iterator[None]:
    """A fault is that of a command."""
    try:
        yield
    except (ValueError, PilotageError) as error:
        raise CannotRender(str(error), command) from error
