"""Rescue files and save points in a workspace: written, numbered, read, chosen to resume from.

Those that no longer apply are renamed to `.old`. Also the reader of the choice in a request
(newest, afresh, a number, a save point), and faults for nodes that the DAG does not have.
"""

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
from wms.dags.rescue.progress import growth_lines, progress_of
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
    """Choice of the resume point of a run: by default the newest rescue, if there is one.

    `rescue_number` chooses that rescue; later ones are renamed. `save_point` chooses the file that
    a node wrote; with `is_fresh` all rescues are renamed.
    """

    takes_newest: bool = True
    rescue_number: int | None = None
    save_point: str = ""
    is_fresh: bool = False


BY_DEFAULT = Resumption()


def read_resumption(resume: str, save_point: str = "") -> Resumption:
    """Resumption from the fields of a request: `newest`, `afresh`, or the number of a rescue.

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
class ResumePoint:
    """Contents of the rescue or save point that a run resumes from: done nodes, retries, and the
    path.
    """

    text: RescueText
    path: str
    number: int


def rescue_numbers(workspace: Workspace, dag_files: list[str]) -> dict[int, str]:
    """Rescue files in the workspace, by number."""
    prefix = rescue_prefix(dag_files)
    files = WorkspaceFile.objects.filter(workspace=workspace, path__startswith=prefix)
    return rescue_numbers_among(files.values_list("path", flat=True), dag_files)


def rescue_prefix(dag_files: list[str]) -> str:
    """Prefix of the names of all rescue files of these DAG files."""
    return f"{rescue_stem(dag_files)}.rescue"


def rescue_numbers_among(paths: Iterable[str], dag_files: list[str]) -> dict[int, str]:
    """Paths that are rescue files of these DAG files, by number."""
    stem, by_number = rescue_stem(dag_files), {}
    for path in paths:
        number = _NUMBER.match(path.removeprefix(stem))
        if number is not None:
            by_number[int(number.group(1))] = path
    return by_number


def prepare_resume_point(
    workspace: Workspace, dag_files: list[str], resumption: Resumption
) -> ResumePoint | None:
    """Resume point of a run of these files; None when it begins afresh.

    Rescues that do not apply any more are renamed to `.old`. Raises InvalidInput.
    """
    numbers = rescue_numbers(workspace, dag_files)
    resume_point = read_rescue(workspace, dag_files, resumption)
    wanted_number = resumption.rescue_number
    if resumption.is_fresh:
        _set_aside(workspace, [*numbers.values(), *_rescues_of_inner_runs(workspace, dag_files)])
    elif not resumption.save_point and wanted_number is not None:
        _set_aside(workspace, [path for number, path in numbers.items() if number > wanted_number])
    return resume_point


def read_rescue(
    workspace: Workspace, dag_files: list[str], resumption: Resumption
) -> ResumePoint | None:
    """Resume point of a run of these files; nothing is renamed. Raises InvalidInput."""
    if resumption.is_fresh:
        return None
    if resumption.save_point:
        path = _save_path(dag_files, resumption.save_point)
        return _read(workspace, path, 0)
    numbers = rescue_numbers(workspace, dag_files)
    wanted_number = resumption.rescue_number
    if wanted_number is None:
        wanted_number = max(numbers, default=None) if resumption.takes_newest else None
        return (
            None
            if wanted_number is None
            else _read(workspace, numbers[wanted_number], wanted_number)
        )
    if wanted_number not in numbers:
        path = rescue_path(dag_files, wanted_number)
        raise InvalidInput.of(f"there is no {path}", field="resume")
    return _read(workspace, numbers[wanted_number], wanted_number)


def _rescues_of_inner_runs(workspace: Workspace, dag_files: list[str]) -> list[str]:
    """Rescues that inner DAGs of earlier runs of these files have left."""
    rescues = Rescue.objects.filter(
        workspace=workspace, kind=Rescue.Kind.RESCUE, dag__root__dag_files=dag_files
    )
    return list(rescues.values_list("path", flat=True))


def write_rescue_of(dag: Dag) -> Rescue | None:
    """Write the DAG's progress under the next free number; None if the limit of rescues is 0.

    At the greatest number the last rescue is replaced.
    """
    greatest = min(options_of(dag).max_rescue, _MOST)
    if greatest == 0:
        return None
    numbers = rescue_numbers(dag.workspace, dag.dag_files)
    own_number = dag.ending_rescue if dag.is_ending else None
    number = own_number or min(max(numbers, default=0) + 1, greatest)
    path = rescue_path(dag.dag_files, number)
    return _write(dag, path, number, Header(rescue_stem(dag.dag_files), timezone.now()))


def write_save_point(dag: Dag, node: Node, path: str) -> Rescue:
    """Write the progress when a node first starts; an older file of the name becomes `.old`."""
    if WorkspaceFile.objects.filter(workspace_id=dag.workspace_id, path=path).exists():
        WorkspaceFile.objects.filter(workspace_id=dag.workspace_id, path=path + OLD).delete()
        _set_aside(dag.workspace, [path])
    header = Header(rescue_stem(dag.dag_files), timezone.now(), start_node=node.name)
    return _write(dag, path, 0, header)


def _write(dag: Dag, path: str, number: int, header: Header) -> Rescue:
    options = options_of(dag)
    progress = progress_of(dag)
    if header.start_node:
        progress = [without_start_node(each, header.start_node) for each in progress]
    text = write_rescue(
        header, progress, growth=growth_lines(dag), resets_retries=options.reset_retries
    )
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


def without_start_node(progress: NodeProgress, start_node: str) -> NodeProgress:
    """Progress in which the node of the save point has not begun."""
    return progress._replace(is_done=False, outcome="") if progress.name == start_node else progress


def _read(workspace: Workspace, path: str, number: int) -> ResumePoint:
    content = read_file(workspace.pk, path)
    if content is None:
        raise InvalidInput.of(f"there is no file {path}", field="save_point")
    try:
        text, findings = parse_rescue(content.decode("utf-8-sig"), file=path)
    except UnicodeDecodeError as error:
        raise InvalidInput.of(f"not UTF-8 text (byte {error.start})", file=path) from error
    if findings:
        raise InvalidInput(findings)
    return ResumePoint(text, path, number)


def unknown_names(resume_point: ResumePoint, names: set[str]) -> list[Finding]:
    """Findings about nodes in a rescue that the DAG does not have."""
    text = resume_point.text
    mentioned = [*text.done, *text.retries, *text.outcomes]
    return [
        Finding(
            f"the DAG has no node {name}",
            file=resume_point.path,
            line=text.lines.get(name),
        )
        for name in dict.fromkeys(mentioned)
        if name not in names
    ][:200]


def _save_path(dag_files: list[str], name: str) -> str:
    """Path of a save point: a bare name is in the folder `save_files`."""
    return name if "/" in name else f"save_files/{name}"


def _set_aside(workspace: Workspace, paths: list[str]) -> None:
    """Rename files to `.old`; older ones of that name are replaced."""
    if not paths:
        return
    files = WorkspaceFile.objects.filter(workspace=workspace)
    files.filter(path__in=[path + OLD for path in paths]).delete()
    files.filter(path__in=paths).update(path=Concat(F("path"), Value(OLD)))
    Rescue.objects.filter(workspace=workspace, path__in=paths).delete()
