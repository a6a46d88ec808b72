"""Progress of a DAG that its edited copy begins with: the rescue, without what is to run again."""

from __future__ import annotations

from collections.abc import Collection

from wms.core.errors import InvalidInput
from wms.dags.models import Dag
from wms.dags.rescue.rescue_files import ResumePoint, Resumption, read_rescue
from wms.dags.resubmission.changes import Effect
from wms.dags.states import DAG_TERMINAL
from wms.dags.submission.workspaces import read_file


def starting_point(dag: Dag, resumption: Resumption) -> ResumePoint | None:
    """Rescue or save point that was chosen; None, as where there is no rescue: all nodes run.

    Raises InvalidInput for one that is not there, and for a DAG that goes on.
    """
    if resumption.is_fresh:
        return None
    if dag.state not in DAG_TERMINAL:
        raise InvalidInput.of(
            f"DAG {dag.pk} is {dag.state}: when it has ended its copy can begin from a rescue, and "
            "until then afresh",
            field="resume",
        )
    return read_rescue(dag.workspace, dag.dag_files, resumption)


def refuse_lost_growth(point: ResumePoint, effect: Effect, edited: Collection[str]) -> None:
    """Raise InvalidInput where nodes that a DAG grew by may have to run again.

    They are in none of the DAG files, but in lines of the rescue, and are not looked at here.
    """
    if point.text.growth and (effect.changed or effect.following or edited):
        raise InvalidInput.of(
            "the DAG has grown, and the edit may change nodes that are done: let them stay done, "
            "or run all nodes again",
            field="resume",
            file=point.path,
        )


def rescue_without(dag: Dag, point: ResumePoint, names: Collection[str]) -> bytes:
    """Text of a rescue without the lines of these nodes."""
    content = read_file(dag.workspace_id, point.path) or b""
    lines = content.decode("utf-8-sig").split("\n")
    left = [line for line in lines if not _is_about(line, names)]
    head = f"# Taken over from DAG {dag.pk}, without the lines of {len(names)} nodes.\n"
    return (head + "\n".join(left)).encode()


def _is_about(line: str, names: Collection[str]) -> bool:
    words = line.split(None, 2)
    return len(words) > 1 and words[0].upper() in {"DONE", "RETRY", "OUTCOME"} and words[1] in names
