"""Rescue files and save points in a workspace: writing, numbering, choosing one to begin from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F, Value
from django.db.models.functions import Concat
from django.utils import timezone

from wms.core.errors import Finding, InvalidInput
from wms.dags.engine.round import options_of
from wms.dags.models import Dag, Node, Rescue
from wms.dags.rescue.names import OLD, rescue_path, rescue_stem
from wms.dags.rescue.progress import progress_of
from wms.dags.rescue.text import (
    Header,
    NodeProgress,
    RescueText,
    counts_as_done,
    parse_rescue,
    write_rescue,
)
from wms.dags.submission.workspaces import put_file, read_file
from wms.jobs.models import Workspace, WorkspaceFile

_NUMBER = re.compile(r"\.rescue([0-9]{3})\Z")
_MOST = 999


@dataclass(frozen=True, slots=True)
class Resumption:
    """From what a run begins: by default the newest rescue, if there is one.

    `rescue_number` takes that one and sets later ones aside; `save_point` is the file that a node
    had written; `is_fresh` sets all rescues aside.
    """

    takes_newest: bool = True
    rescue_number: int | None = None
    save_point: str = ""
    is_fresh: bool = False


BY_DEFAULT = Resumption()


def read_resumption(resume: str, save_point: str = "") -> Resumption:
    """What a run begins from: `newest`, `afresh`, or the number of a rescue.

    Raises InvalidInput.
    """
    resume = resume.strip() or "newest"
    if save_point.strip():
        if resume != "newest":
            raise InvalidInput.of("give a rescue or a save point, not both", field="save_point")
        return Resumption(save_point=save_point.strip())
    if resume == "newest":
        return Resumption()
    if resume == "afresh":
        return Resumption(is_fresh=True)
    if resume.isascii() and resume.isdigit() and len(resume) <= 3 and int(resume):
        return Resumption(rescue_number=int(resume))
    message = "must be newest, afresh, or the number of a rescue, from 1 to 999"
    raise InvalidInput.of(message, field="resume")


@dataclass(frozen=True, slots=True)
class Begun:
    """What a run begins from: the nodes done before and their retries, and where it was read."""

    text: RescueText
    path: str
    number: int


def rescue_numbers(workspace: Workspace, dag_files: list[str]) -> dict[int, str]:
    """The rescue files that lie in the workspace, by number."""
    prefix = rescue_prefix(dag_files)
    files = WorkspaceFile.objects.filter(workspace=workspace, path__startswith=prefix)
    return rescue_numbers_among(files.values_list("path", flat=True), dag_files)


def rescue_prefix(dag_files: list[str]) -> str:
    """How the names of all rescue files of these DAG files begin."""
    return f"{rescue_stem(dag_files)}.rescue"


def rescue_numbers_among(paths: Iterable[str], dag_files: list[str]) -> dict[int, str]:
    """Those of these paths that are rescue files of these DAG files, by number."""
    stem, found = rescue_stem(dag_files), {}
    for path in paths:
        number = _NUMBER.match(path.removeprefix(stem))
        if number is not None:
            found[int(number.group(1))] = path
    return found


def begin_from(workspace: Workspace, dag_files: list[str], resumption: Resumption) -> Begun | None:
    """What a run of these files begins from; None when it begins afresh.

    Rescues that it does not go on from are renamed to `.old`. Raises InvalidInput.
    """
    numbers = rescue_numbers(workspace, dag_files)
    begun = read_rescue(workspace, dag_files, resumption)
    wanted = resumption.rescue_number
    if resumption.is_fresh:
        _set_aside(workspace, [*numbers.values(), *_of_inner_runs(workspace, dag_files)])
    elif not resumption.save_point and wanted is not None:
        _set_aside(workspace, [path for number, path in numbers.items() if number > wanted])
    return begun


def read_rescue(workspace: Workspace, dag_files: list[str], resumption: Resumption) -> Begun | None:
    """What a run of these files would begin from, without beginning it. Raises InvalidInput."""
    if resumption.is_fresh:
        return None
    if resumption.save_point:
        path = _save_path(dag_files, resumption.save_point)
        return _read(workspace, path, 0)
    numbers = rescue_numbers(workspace, dag_files)
    wanted = resumption.rescue_number
    if wanted is None:
        wanted = max(numbers, default=None) if resumption.takes_newest else None
        return None if wanted is None else _read(workspace, numbers[wanted], wanted)
    if wanted not in numbers:
        path = rescue_path(dag_files, wanted)
        raise InvalidInput.of(f"there is no {path}", field="resume")
    return _read(workspace, numbers[wanted], wanted)


def _of_inner_runs(workspace: Workspace, dag_files: list[str]) -> list[str]:
    """The rescues that DAGs inside of earlier runs of these files have left."""
    left = Rescue.objects.filter(
        workspace=workspace, kind=Rescue.Kind.RESCUE, dag__root__dag_files=dag_files
    )
    return list(left.values_list("path", flat=True))


def write_rescue_of(dag: Dag) -> Rescue | None:
    """Write what the DAG has done under the next free number; None when none is to be written.

    Beyond the greatest number the last one is written anew.
    """
    greatest = min(options_of(dag).max_rescue, _MOST)
    if greatest == 0:
        return None
    numbers = rescue_numbers(dag.workspace, dag.dag_files)
    begun = dag.ending_rescue if dag.is_ending else None
    number = begun or min(max(numbers, default=0) + 1, greatest)
    path = rescue_path(dag.dag_files, number)
    return _write(dag, path, number, Header(rescue_stem(dag.dag_files), timezone.now()))


def write_save_point(dag: Dag, node: Node, path: str) -> Rescue:
    """Write what is done when a node first starts; an older file of the name becomes `.old`."""
    if WorkspaceFile.objects.filter(workspace_id=dag.workspace_id, path=path).exists():
        WorkspaceFile.objects.filter(workspace_id=dag.workspace_id, path=path + OLD).delete()
        _set_aside(dag.workspace, [path])
    header = Header(rescue_stem(dag.dag_files), timezone.now(), start_node=node.name)
    return _write(dag, path, 0, header)


def _write(dag: Dag, path: str, number: int, header: Header) -> Rescue:
    options = options_of(dag)
    progress = progress_of(dag)
    if header.start_node:
        progress = [replace_started(each, header.start_node) for each in progress]
    text = write_rescue(header, progress, resets_retries=options.reset_retries)
    blob = put_file(dag.workspace, path, text.encode())
    rescue, _ = Rescue.objects.update_or_create(
        workspace=dag.workspace,
        path=path,
        defaults={
            "dag_file": rescue_stem(dag.dag_files),
            "kind": Rescue.Kind.SAVE_POINT if header.start_node else Rescue.Kind.RESCUE,
            "number": number,
            "dag": dag,
            "blob": blob,
            "done_count": sum(map(counts_as_done, progress)),
            "failed_count": sum(each.is_failed for each in progress),
            "created_at": timezone.now(),
        },
    )
    return rescue


def replace_started(progress: NodeProgress, start_node: str) -> NodeProgress:
    """The node that a save point is of has not begun in it."""
    return progress._replace(is_done=False) if progress.name == start_node else progress


def _read(workspace: Workspace, path: str, number: int) -> Begun:
    content = read_file(workspace.pk, path)
    if content is None:
        raise InvalidInput.of(f"there is no file {path}", field="save_point")
    try:
        text, findings = parse_rescue(content.decode("utf-8-sig"), file=path)
    except UnicodeDecodeError as error:
        raise InvalidInput.of(f"not UTF-8 text (byte {error.start})", file=path) from error
    if findings:
        raise InvalidInput(findings)
    return Begun(text, path, number)


def unknown_names(begun: Begun, names: set[str]) -> list[Finding]:
    """What a rescue says of nodes that the DAG does not have."""
    mentioned = [*begun.text.done, *begun.text.retries]
    return [
        Finding(f"the DAG has no node {name}", file=begun.path, line=begun.text.lines.get(name))
        for name in dict.fromkeys(mentioned)
        if name not in names
    ][:200]


def _save_path(dag_files: list[str], name: str) -> str:
    """Where a save point lies: a bare name is in the folder of save files, as it was written."""
    return name if "/" in name else f"save_files/{name}"


def _set_aside(workspace: Workspace, paths: list[str]) -> None:
    """Rename files to `.old`, in place of older ones."""
    if not paths:
        return
    files = WorkspaceFile.objects.filter(workspace=workspace)
    files.filter(path__in=[path + OLD for path in paths]).delete()
    files.filter(path__in=paths).update(path=Concat(F("path"), Value(OLD)))
    Rescue.objects.filter(workspace=workspace, path__in=paths).delete()
