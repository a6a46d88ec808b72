"""Origin of a submission: the directory in which file names of DAG files are looked up.

It is condor_submit_dag's working directory, read from the fields of a submission. Also advice for
names outside of the workspace. Source: DAGMan resolves names from where condor_submit_dag is
called, with -UseDagDir from the folder of each DAG file (HTCondor,
docs/automated-workflows/dagman-file-paths.rst).
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from wms.core.errors import Finding, InvalidInput
from wms.dags.language.faults import Fault
from wms.jobs.content.paths import checked_path

MAX_ROOT_LENGTH = 1000
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Origin:
    """Directory of a submission, as condor_submit_dag's working directory.

    `directory`: the folder of the workspace in which condor_submit_dag would be called; empty for
    its top. `root`: the absolute path that the top of the workspace had where the files come from;
    absolute names below it are names in the workspace. `uses_dag_dir`: the names in each DAG file
    are resolved in the folder of that file instead.
    """

    directory: str = ""
    root: str = ""
    uses_dag_dir: bool = False

    def inside(self, directory: str, name: str) -> str:
        """Path in the workspace of the file called `name` in a directory; `.` for the top.

        Raises Fault, with advice, for a path outside of the workspace.
        """
        path = posixpath.normpath(posixpath.join(directory, name))
        if not name.startswith("/") and not _is_outside(path):
            return path
        if self.root:
            path = posixpath.relpath(self._absolute(directory, name), self.root)
            if not _is_outside(path):
                return path
        raise Fault(self._outside_message(directory, name))

    def program(self, directory: str, name: str) -> str:
        """Program of a script, relative to the directory of its node.

        An absolute name that is not below the root is a program of the host that runs scripts.
        """
        if not name.startswith("/"):
            return name
        try:
            return posixpath.relpath(self.inside(directory, name), directory or ".")
        except Fault:
            return name

    def _absolute(self, directory: str, name: str) -> str:
        path = posixpath.normpath(posixpath.join(self.root, directory, name))
        return "/" + path.lstrip("/")

    def _outside_message(self, directory: str, name: str) -> str:
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        problem = f"{shown} leads outside of the workspace"
        if self.root:
            needed = self._absolute(directory, name)
            common = posixpath.commonpath([self.root, posixpath.dirname(needed)])
            if common == "/":
                return (
                    f"{problem}: it is not below the root {self.root}. Send a copy, and name that"
                )
            return (
                f"{problem}: it is not below the root {self.root}. Send {common} with all that is "
                f"needed in it, and give root={common}"
            )
        if name.startswith("/"):
            folder = posixpath.dirname(posixpath.normpath("/" + name.lstrip("/")))
            if folder == "/":
                return f"{problem}: it is an absolute name. Send a copy, and name that"
            return (
                f"{problem}: it is an absolute name. Send the folder {folder}, or one above it, "
                f"and give its path as root, as in root={folder}"
            )
        path = posixpath.normpath(posixpath.join(directory, name))
        above = "/".join(part for part in path.split("/") if part == "..")
        return (
            f"{problem}. Send the folder above ({above}), which has {_part_below(path)}, and give "
            "as directory the folder in it from which names are looked up"
        )


TOP = Origin()


def read_origin(directory: str = "", root: str = "", *, uses_dag_dir: bool = False) -> Origin:
    """Origin from the fields of a submission. Raises InvalidInput with every fault."""
    directory, root, findings = directory.strip(), root.strip(), []
    if root:
        is_plain = root.isprintable() and len(root) <= MAX_ROOT_LENGTH
        if not root.startswith("/") or not is_plain:
            message = f"must be an absolute path of at most {MAX_ROOT_LENGTH} characters"
            findings.append(Finding(f"{message}, as in /home/alice/run", field="root"))
            root = ""
        else:
            root = "/" + posixpath.normpath(root).lstrip("/")
    if directory:
        try:
            directory = Origin(root=root).inside("", directory)
            directory = "" if directory == "." else checked_path(directory, field="directory")
        except Fault as fault:
            findings.append(Finding(str(fault), field="directory"))
        except InvalidInput as error:
            findings += error.findings
    if uses_dag_dir and directory:
        message = "names are looked up either from a directory or from the folders of the DAG files"
        findings.append(Finding(message, field="use_dag_dir"))
    if findings:
        raise InvalidInput(findings)
    return Origin(directory, root, uses_dag_dir)


def _is_outside(path: str) -> bool:
    return path.startswith("/") or path.split("/")[0] == ".."


def _part_below(path: str) -> str:
    return "/".join(part for part in path.split("/") if part != "..") or "what is named"
