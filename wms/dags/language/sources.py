"""What the nodes run: their descriptions, once all of them are known."""

from __future__ import annotations

from collections.abc import Iterator

from wms.dags.language.faults import Fault
from wms.dags.language.reading import Reading
from wms.dags.states import NodeKind

_WITHOUT_DESCRIPTION = frozenset({NodeKind.SUBDAG, NodeKind.DATA})


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
            node.source = reading.path(node.directory, node.source)
        except Fault as fault:
            reading.told.fault(str(fault), node.place, node.kind.upper())
            node.source = ""


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
