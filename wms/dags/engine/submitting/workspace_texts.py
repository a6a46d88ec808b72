"""Texts that the engine reads when a node is submitted: workspace files, late submit descriptions.

Late ones are in files that did not exist when the DAG was submitted, or have changed since. Also
the names of nodes' parents.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from wms.core.errors import PilotageError
from wms.dags.engine.submitting.throttles import ReadyNode
from wms.dags.models import Dag, Edge
from wms.jobs.content.blobs import open_blob
from wms.jobs.description.submit_file import SubmitFile, parse_submit_file
from wms.jobs.models import WorkspaceFile

#: Submit files and lists of items are text that people write; larger ones are a mistake.
MAX_TEXT_BYTES = 1024 * 1024


class NoDescription(PilotageError):
    """A node's description is missing or wrong when the node is to be submitted."""


class WorkspaceFiles:
    """The files of a workspace by their names from a directory of it; each is read once."""

    def __init__(self, workspace_id: int, directory: str = "") -> None:
        self._workspace_id = workspace_id
        self._directory = directory
        self._texts: dict[str, str | None] = {}

    def text(self, path: str) -> str | None:
        """The content of a file; None when it is not there, or no text."""
        place = posixpath.normpath(posixpath.join(self._directory, path))
        if place not in self._texts:
            self._texts |= {place: None, **texts_of(self._workspace_id, [place])}
        return self._texts[place]

    def names(self) -> Sequence[str]:
        """The names of all files below the directory, in their order."""
        return self._names

    @cached_property
    def _names(self) -> list[str]:
        files = WorkspaceFile.objects.filter(workspace_id=self._workspace_id)
        below = f"{self._directory}/" if self._directory else ""
        paths = files.filter(path__startswith=below).values_list("path", flat=True)
        return sorted(path[len(below) :] for path in paths)


def texts_of(workspace_id: int, paths: Collection[str]) -> dict[str, str]:
    """Texts of the files that exist, and are no larger than text that people
    write. One query.
    """
    if not paths:
        return {}
    files = WorkspaceFile.objects.filter(workspace_id=workspace_id, path__in=set(paths))
    texts: dict[str, str] = {}
    for path, sha256, size in files.values_list("path", "blob_id", "blob__size_bytes"):
        if size > MAX_TEXT_BYTES:
            continue
        with open_blob(sha256) as stream:
            try:
                texts[path] = stream.read().decode("utf-8-sig")
            except UnicodeDecodeError:
                continue
    return texts


class LateDescriptions:
    """Descriptions in files that the DAG did not bring, or that have changed since."""

    def __init__(self, dag: Dag, sources: Collection[str]) -> None:
        self._texts = texts_of(dag.workspace_id, sources)

    def read(self, source: str) -> SubmitFile:
        """The description in a file of the workspace. Raises NoDescription."""
        text = self._texts.get(source)
        if text is None:
            raise NoDescription(f"there is no submit description {source}, or it is no text")
        if "\0" in text:
            raise NoDescription(f"{source} contains a zero byte")
        parsed = parse_submit_file(text, file=source)
        if parsed.findings:
            raise NoDescription(str(parsed.findings[0]))
        return parsed


class Parents:
    """The names of the nodes' parents, read for all of them when the first is asked for."""

    def __init__(self, nodes: Iterable[ReadyNode]) -> None:
        self._node_ids = [node.pk for node in nodes]

    def names(self, node_id: int) -> Sequence[str]:
        """The names of a node's parents, in the order of the DAG file."""
        return self._names.get(node_id, [])

    @cached_property
    def _names(self) -> Mapping[int, list[str]]:
        names: dict[int, list[str]] = defaultdict(list)
        edges = Edge.objects.filter(child_id__in=self._node_ids)
        in_order = edges.order_by("child_id", "parent__ordinal")
        for child_id, name in in_order.values_list("child_id", "parent__name"):
            names[child_id].append(name)
        return names
