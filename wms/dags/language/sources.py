"""What the nodes run: their descriptions, once all of them are known."""

from __future__ import annotations

from collections.abc import Iterator

from wms.dags.language.faults import Fault
from wms.dags.language.reading import Reading
from wms.dags.language.spec import NodeSpec
from wms.dags.rescue.names import rescue_fault
from wms.dags.states import NodeKind

_WITHOUT_DESCRIPTION = frozenset({NodeKind.SUBDAG, NodeKind.DATA})
#: How the description of DAGMan's own job ends, which condor_submit_dag writes beside a DAG file.
_OF_A_DAG = ".condor.sub"


def settle_sources(reading: Reading) -> None:
    """Make keys and paths of what the nodes call their sources.

    A name is that of a description of the node's own scope, else of one around it, else of a file.
    """
    for node in reading.specs:
        if node.source in reading.spec.descriptions:
            continue
        if reading.shared and node.kind not in _WITHOUT_DESCRIPTION:
            key = _shared(reading, node.name, node.source)
            if key:
                node.source = key
                continue
        try:
            _refuse_description_of_dag(node)
            node.source = reading.path(node.directory, node.source)
            if node.kind is NodeKind.SUBDAG and (fault := rescue_fault([node.source])):
                raise Fault(f"rescues of this DAG could not be stored: {fault}")
        except Fault as error:
            reading.told.fault(str(error), node.place, node.kind.upper())
            node.source = ""


def _refuse_description_of_dag(node: NodeSpec) -> None:
    if node.kind is NodeKind.JOB and node.source.endswith(_OF_A_DAG):
        dag_file = node.source.removesuffix(_OF_A_DAG)
        raise Fault(f"{node.source} is DAGMan's own: use SUBDAG EXTERNAL, with {dag_file}")


def _shared(reading: Reading, name: str, source: str) -> str:
    for prefix in _prefixes(name, len(reading.dag_files) > 1):
        key = reading.shared.get(prefix, {}).get(source)
        if key:
            return key
    return ""


def _prefixes(name: str, has_several_files: bool) -> Iterator[str]:
    """The prefixes of the scopes in which a node is, the innermost first."""
    end = name.rfind("+")
    while end >= 0:
        yield name[: end + 1]
        end = name.rfind("+", 0, end)
    yield name.partition(".")[0] + "." if has_several_files else ""
