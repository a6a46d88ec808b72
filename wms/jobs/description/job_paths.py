"""Paths of a job's files in its workspace, made and checked after all macros are expanded."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from wms.core.errors import PilotageError
from wms.jobs.content.paths import checked_path, path_in
from wms.jobs.description.job_fields import checked_executable
from wms.jobs.description.renderer_inputs import CannotRender
from wms.jobs.directives import Directives
from wms.jobs.specs import CLUSTER_MARK

#: The fields that name files of the job's directory, and their commands.
_FILES = {
    "input_files": "transfer_input_files",
    "output_files": "transfer_output_files",
    "stdout_name": "output",
    "stderr_name": "error",
}
_PATH_FIELDS = ("directory", "executable", "directives", *_FILES)
_LONGEST_CLUSTER = str(2**63 - 1)


class JobPaths:
    """Checks the paths of jobs; the result for the last job is kept, since many jobs share it."""

    def __init__(self) -> None:
        self._last: tuple[object, Mapping[str, str]] = None, {}

    def workspace_paths(
        self, fields: Mapping[str, Any], node_directory: str, *, mentions_cluster: bool = False
    ) -> Mapping[str, str]:
        """Directory and executable of a job, relative to the top of the workspace.

        Unknown fields may be missing. Raises CannotRender where a file of the job has no valid
        path, even with the longest cluster number.
        """
        if not (node_directory or fields.get("directory") or mentions_cluster):
            # Each by itself was looked at when it was read.
            return {}
        names_by_field = {name: fields.get(name, "") for name in _PATH_FIELDS}
        known, workspace_paths = self._last
        if known != (node_directory, names_by_field):
            workspace_paths = _workspace_paths(names_by_field, node_directory)
            self._last = (node_directory, names_by_field), workspace_paths
        return workspace_paths

    def shared_paths(self, fields: Mapping[str, Any], node_directory: str) -> dict[str, str]:
        """Those of directory and executable that are among the fields, where they are others."""
        if not (node_directory or fields.get("directory", "")):
            return {}
        paths = _workspace_paths(
            {name: fields.get(name, "") for name in _PATH_FIELDS}, node_directory
        )
        return {name: path for name, path in paths.items() if name in fields}


def _workspace_paths(names_by_field: Mapping[str, Any], node_directory: str) -> Mapping[str, str]:
    workspace_paths = {
        "directory": posixpath.join(node_directory, names_by_field["directory"]).rstrip("/")
    }
    if workspace_paths["directory"]:
        with _errors_of_command("initialdir"):
            workspace_paths["directory"] = checked_path(
                workspace_paths["directory"], field="initialdir"
            )
            checked_path(_with_longest_cluster(workspace_paths["directory"]), field="initialdir")
    if names_by_field["executable"]:
        with _errors_of_command("executable"):
            workspace_paths["executable"] = checked_executable(
                names_by_field["executable"], node_directory
            )
            checked_executable(_with_longest_cluster(workspace_paths["executable"]))
    directory = _with_longest_cluster(workspace_paths["directory"])
    for field, command in _FILES.items():
        names = names_by_field[field]
        with _errors_of_command(command):
            for name in filter(None, (names,) if isinstance(names, str) else names):
                path_in(directory, _with_longest_cluster(name), field=command)
    with _errors_of_command("transfer_output_remaps"):
        for name in Directives.of(names_by_field["directives"] or None).output_remaps.values():
            path_in(directory, _with_longest_cluster(name), field="transfer_output_remaps")
    return workspace_paths


def _with_longest_cluster(name: str) -> str:
    """Name in which the cluster's number has the most digits possible."""
    return name.replace(CLUSTER_MARK, _LONGEST_CLUSTER)


@contextmanager
def _errors_of_command(command: str) -> Iterator[None]:
    """Turn errors of the block into CannotRender for this command."""
    try:
        yield
    except (ValueError, PilotageError) as error:
        raise CannotRender(str(error), command) from error
