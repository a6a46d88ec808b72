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


def resolve_sources(state: ParseState) -> None:
    """Replace the source of each node by the key of a description or the path of a file.

    A name is that of a description in the node's own scope, else in one around it, else of a file.
    """
    for node in state.specs:
        if node.kind is NodeKind.GATE or node.source in state.spec.descriptions:
            continue
        if state.shared and node.kind not in _WITHOUT_DESCRIPTION:
            key = _shared_description(state, node.name, node.source)
            if key:
                node.source = key
                continue
        try:
            _refuse_description_of_dag(node)
            node.source = state.path(node.directory, node.source)
            if node.kind is NodeKind.SUBDAG and (fault := rescue_fault([node.source])):
                raise Fault(f"rescues of this DAG could not be stored: {fault}")
        except Fault as error:
            state.collector.add_fault(str(error), node.location, node.kind.upper())
            node.source = ""


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
