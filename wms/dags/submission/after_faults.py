"""What can be told of the nodes where lines of the DAG files are faulty, by their commands.

A fault that would only follow from such a line is not told.
"""

from __future__ import annotations

from wms.dags.language.spec import DagSpec

#: Commands that change neither which nodes there are nor what their descriptions say.
_BESIDE_NODES = frozenset(
    {
        "ABORT-DAG-ON", "ALWAYS-RUN-POST", "CATEGORY", "CONFIG", "DOT", "ENV", "JOBSTATE_LOG",
        "JOIN", "MAXJOBS", "NODE_STATUS_FILE", "PARENT", "PRE_SKIP", "PRIORITY", "REJECT", "RETRY",
        "SAVE_POINT_FILE", "SET_JOB_ATTR", "SUCCESS", "TIMEOUT", "TOLERANCE", "WEAK",
    }
)  # fmt: skip
#: Commands without which a node or a script is missing, and what it would make.
_MAKERS = frozenset({"DATA", "FINAL", "JOB", "PROVISIONER", "SCRIPT", "SERVICE", "SUBDAG"})


def can_check_nodes(dag: DagSpec) -> bool:
    """Whether the nodes that there are have the descriptions, values and directories they will."""
    return dag.is_whole and _faulty(dag) <= _BESIDE_NODES | _MAKERS


def knows_all_makers(dag: DagSpec) -> bool:
    """Whether all is known that makes files."""
    return _faulty(dag) <= _BESIDE_NODES


def _faulty(dag: DagSpec) -> set[str]:
    return {fault.command for fault in dag.findings}
