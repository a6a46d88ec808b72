"""Texts of a DAG's submission for an edit: which of its files can be changed, and which stay.

Texts are what was submitted and is plain text of moderate size: DAG files, the DAG's own
description, submit descriptions, scripts, configurations. What jobs and scripts wrote, rescues,
inputs of jobs, and what is no text or large, is listed and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from wms.core.errors import Conflict, Finding, InvalidInput
from wms.dags.models import Dag, Rescue, SubmitDescription
from wms.dags.rescue.names import OLD, rescue_stem
from wms.dags.rescue.rescue_files import rescue_prefix
from wms.dags.resubmission.own_description import Beside, beside, description_text
from wms.jobs.content.blobs import open_blob
from wms.jobs.models import WorkspaceFile

#: Bytes of one text, bytes of all, and number of texts on one page: forms have their limits.
MOST_BYTES: Final = 256 * 1024
MOST_BYTES_IN_ALL: Final = 1024 * 1024
MOST_TEXTS: Final = 100
#: Files that a submission may take over, as of those that came by uploads.
MOST_FILES: Final = 10_000
#: Descriptions that are looked through for the names of inputs.
_MOST_DESCRIPTIONS: Final = 1000
_RESCUE = re.compile(r"\.rescue[0-9]{3}(?:\.old)*\Z")
_NOT_PLAIN = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_INPUTS = ("transfer_input_files", "common_input_files", "public_input_files", "input")
_SEPARATOR = re.compile(r"[\s,]+")


class Role(StrEnum):
    """Part of a text in its DAG."""

    DAG_FILE = "DAG file"
    DESCRIPTION = "description of the whole DAG"
    SUBMIT = "submit description"
    OTHER = "text"


class Kept(StrEnum):
    """Reason why a file cannot be changed."""

    INPUT = "input of jobs"
    LARGE = "large"
    NOT_TEXT = "no plain text"
    WRITTEN = "written while the DAG ran"
    MANY = "more than fits on the page"


class StoredFile(NamedTuple):
    """A file of the workspace; `is_output`: a job sent it back."""

    path: str
    sha256: str
    size_bytes: int
    is_output: bool
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class Text:
    """A text that can be changed, with lines that end with a newline alone.

    `line_end` is how they end in the file; without a `sha256` it is no file yet.
    """

    path: str
    role: Role
    text: str
    sha256: str = ""
    line_end: str = "\n"

    def changed(self, typed: str) -> bytes | None:
        """Content of the file with what was typed; None where that is the same text."""
        given = plain_lines(typed)
        return None if given == self.text else given.replace("\n", self.line_end).encode()


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that stays as it is."""

    path: str
    size_bytes: int
    why: Kept


@dataclass(slots=True)
class EditSource:
    """Files of a DAG as an edit begins from them.

    `stored` are all of the workspace, by path; `progress` the paths of rescues and save points.
    """

    dag: Dag
    description_name: str
    stored: Mapping[str, StoredFile]
    progress: frozenset[str]
    texts: dict[str, Text] = field(default_factory=dict)
    kept: list[KeptFile] = field(default_factory=list)

    @property
    def beside(self) -> Beside:
        """What the DAG has beside its description."""
        described = self.texts.get(self.description_name)
        return beside(self.dag, described.text if described is not None else "")

    @property
    def inner_rescues(self) -> frozenset[str]:
        """Paths of the rescues of DAGs inside of it."""
        own = rescue_prefix(self.dag.dag_files)
        return frozenset(
            path
            for path in self.progress
            if _RESCUE.search(path) and not path.startswith(own) and not path.endswith(OLD)
        )

    @property
    def outputs(self) -> list[StoredFile]:
        """Files that jobs sent back."""
        return [each for each in self.stored.values() if each.is_output]


def read_source(dag: Dag) -> EditSource:
    """Files of a DAG for an edit. Raises Conflict for a DAG that cannot be edited."""
    if dag.parent_node_id is not None:
        raise Conflict(f"DAG {dag.pk} is inside of another one: edit that.")
    if dag.is_followed:
        raise Conflict(f"DAG {dag.pk} follows the log of another engine: its files are there.")
    stored = {each.path: each for each in _stored_files(dag)}
    if len(stored) > MOST_FILES:
        raise InvalidInput.of(
            f"DAG {dag.pk} has {len(stored)} files, and at most {MOST_FILES} are taken over",
            field="files",
        )
    source = EditSource(dag, _description_name(dag, stored), stored, _progress(dag, stored))
    _sort_files(source)
    return source


def plain_lines(text: str) -> str:
    """Text whose lines end with a newline alone, as browsers show it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def unknown_texts(source: EditSource, paths: Sequence[str]) -> list[Finding]:
    """Faults of texts that are none of the DAG's, or cannot be changed."""
    return [
        Finding("the DAG has no such text that can be changed", file=path)
        for path in paths
        if path not in source.texts
    ]


def _stored_files(dag: Dag) -> Iterator[StoredFile]:
    rows = WorkspaceFile.objects.filter(workspace_id=dag.workspace_id).order_by("path")
    columns = ("path", "blob_id", "blob__size_bytes", "attempt_id", "modified_at")
    for path, sha256, size_bytes, attempt_id, at in rows.values_list(*columns)[: MOST_FILES + 1]:
        yield StoredFile(path, sha256, size_bytes, attempt_id is not None, at)


def _description_name(dag: Dag, stored: Mapping[str, StoredFile]) -> str:
    """Name of the DAG's own description; a free one where it has none, or none is known."""
    if dag.description_file in stored:
        return dag.description_file
    name = f"{rescue_stem(dag.dag_files).removesuffix('.dag')[:200]}.description"
    while name in stored:
        name += "1"
    return name


def _progress(dag: Dag, stored: Mapping[str, StoredFile]) -> frozenset[str]:
    rows = Rescue.objects.filter(workspace_id=dag.workspace_id)
    written = set(rows.values_list("path", flat=True))
    return frozenset(
        path for path in stored if path.removesuffix(OLD) in written or _RESCUE.search(path)
    )


def _sort_files(source: EditSource) -> None:
    """Sort the files into texts and others; of the texts DAG files and descriptions come first."""
    dag, stored = source.dag, source.stored
    rows = SubmitDescription.objects.filter(dag=dag).order_by("name")
    contents = dict(rows.values_list("name", "content")[:_MOST_DESCRIPTIONS])
    roles = dict.fromkeys(dag.dag_files, Role.DAG_FILE)
    roles.setdefault(source.description_name, Role.DESCRIPTION)
    roles |= {name: Role.SUBMIT for name in contents if name in stored and name not in roles}
    if source.description_name not in stored:
        source.texts[source.description_name] = Text(
            source.description_name, Role.DESCRIPTION, description_text(dag)
        )
    inputs = _Inputs(contents)
    runs = Dag.objects.filter(workspace=dag.workspace_id).order_by("pk")
    submitted_at = runs.values_list("created_at", flat=True)[0]
    room_bytes = MOST_BYTES_IN_ALL
    rest = [path for path in stored if path not in roles and path not in source.progress]
    for path in [*(path for path in roles if path in stored), *rest]:
        file, role = stored[path], roles.get(path, Role.OTHER)
        if file.is_output:
            continue
        read: Text | Kept
        if role is Role.OTHER and inputs.include(path):
            read = Kept.INPUT
        elif role is Role.OTHER and file.modified_at > submitted_at:
            read = Kept.WRITTEN
        elif len(source.texts) >= MOST_TEXTS or min(file.size_bytes, MOST_BYTES) > room_bytes:
            read = Kept.MANY
        else:
            read = _read(file, role)
        if isinstance(read, Text):
            source.texts[path] = read
            room_bytes -= file.size_bytes
        else:
            source.kept.append(KeptFile(path, file.size_bytes, read))
    # The DAG's own description comes after the DAG files, whether it is a file yet or not.
    order = {role: place for place, role in enumerate(Role)}
    source.texts = dict(sorted(source.texts.items(), key=lambda each: order[each[1].role]))


def _read(file: StoredFile, role: Role) -> Text | Kept:
    if file.size_bytes > MOST_BYTES:
        return Kept.LARGE
    with open_blob(file.sha256) as stream:
        content = stream.read()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return Kept.NOT_TEXT
    if _NOT_PLAIN.search(text):
        return Kept.NOT_TEXT
    is_crlf = text.count("\r\n") == text.count("\n") > 0
    return Text(file.path, role, plain_lines(text), file.sha256, "\r\n" if is_crlf else "\n")


class _Inputs:
    """Names of files and folders that submit descriptions give as inputs of jobs."""

    def __init__(self, contents: Mapping[str, Mapping[str, object]]) -> None:
        self._names = {
            name.strip('"').rstrip("/")
            for content in contents.values()
            for command in _INPUTS
            for name in _SEPARATOR.split(_command(content, command))
            if name and "://" not in name and "$" not in name
        } - {""}

    def include(self, path: str) -> bool:
        """Whether a path has one of these names, in whatever folder its node runs."""
        parts = path.split("/")
        return any(
            "/".join(parts[first:last]) in self._names
            for first in range(len(parts))
            for last in range(first + 1, len(parts) + 1)
        )


def _command(content: Mapping[str, object], command: str) -> str:
    commands = content.get("commands")
    return str(commands.get(command, "")) if isinstance(commands, dict) else ""
