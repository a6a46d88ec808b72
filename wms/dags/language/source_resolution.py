"""Resolution of nodes' sources after parsing: to an inline description, or a file's path.

Also the faults of sources that cannot be used, and of inner DAGs whose rescues could not be
stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from wms.dags.language.faults import Fault
from wms.dags.language.parse_state import ParseState
from wms.dags.language.spec import NodeSpec
from wms.dags.rescue.names import rescue_fault
from wms.dags.states import NodeKind

_WITHOUT_DESCRIPTION = frozenset({NodeKind.SUBDAG, NodeKind.DATA})
#: Suffix of DAGMan's own submit description, which condor_submit_dag writes.
_OF_A_DAG = ".condor.sub"
_MOST_KNOWN = 10_000


def resolve_sources(state: ParseState) -> None:
    """Replace the source of each node by the key of a description or the path of a file.

    A name is that of a description in the node's own scope, else in one around it, else of a file.
    """
    #: Paths of jobs' descriptions, where no name can stand for one: many nodes have the same.
    known: dict[tuple[str, str], str] = {}
    for node in state.specs:
        if node.kind is NodeKind.GATE:
            continue
        is_job = node.kind is NodeKind.JOB
        path = known.get((node.directory, node.source)) if is_job else None
        if path is None:
            path = _resolved(state, node)
            is_file = path and path not in state.spec.descriptions
            if is_job and is_file and not state.shared and len(known) < _MOST_KNOWN:
                known[node.directory, node.source] = path
        node.source = path


def _resolved(state: ParseState, node: NodeSpec) -> str:
    """Key or path for the source of a node; empty for a faulty one, whose fault is recorded.

    Empty too for a NOOP node with a file outside of the workspace: nobody ever reads it.
    """
    if node.source in state.spec.descriptions:
        return node.source
    if state.shared and node.kind not in _WITHOUT_DESCRIPTION:
        key = _shared_description(state, node.name, node.source)
        if key:
            return key
    try:
        _refuse_description_of_dag(node)
        path = state.path(node.directory, node.source)
        if node.kind is NodeKind.SUBDAG and (fault := rescue_fault([path])):
            raise Fault(f"rescues of this DAG could not be stored: {fault}")
    except Fault as error:
        if not node.is_noop:
            state.collector.add_fault(str(error), node.location, node.kind.upper())
        return ""
    return path


def _refuse_description_of_dag(node: NodeSpec) -> None:
    if node.kind is NodeKind.JOB and node.source.endswith(_OF_A_DAG):
        dag_file = node.source.removesuffix(_OF_A_DAG)
        raise Fault(f"{node.source} is DAGMan's own: use SUBDAG EXTERNAL, with {dag_file}")


def _shared_description(state: ParseState, name: str, source: str) -> str:
    for prefix in _scope_prefixes(name, len(state.dag_files) > 1):
        key = state.shared.get(prefix, {}).get(source)
        if key:
            return key
    return ""


def _scope_prefixes(name: str, has_several_files: bool) -> Iterator[str]:
    """Prefixes of the scopes around a node, the innermost first."""
    end = name.rfind("+")
    while end >= 0:
        yield name[: end + 1]
        end = name.rfind("+", 0, end)
    yield name.partition(".")[0] + "." if has_several_files else ""
