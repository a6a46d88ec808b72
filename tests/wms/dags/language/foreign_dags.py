"""Foreign DAG files of `tests/samples/dagman/foreign`, with their verdicts, for tests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

_FOLDER = Path(__file__).parents[3] / "samples/dagman/foreign"
_FILE = re.compile(r"^---- (\S+)( \(no newline at its end\))?\n", re.M)


@dataclass
class ForeignDag:
    """A public DAG file: where it is from, its texts, and its verdict by DAGMan's rules.

    `nodes` and `arcs` are None for a refused file. Faults and warnings are file, line, and words of
    the message.
    """

    source: str
    root: str = ""
    nodes: int | None = None
    arcs: int | None = None
    faults: list[tuple[str, int, str]] = field(default_factory=list)
    warnings: list[tuple[str, int, str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


def foreign_dags() -> list[ForeignDag]:
    """All foreign DAG files, in the order of the folder."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(_FOLDER.glob("*.txt")))
    entries = (entry for text in texts for entry in re.split(r"^==== ", text, flags=re.M)[1:])
    return [_read(entry) for entry in entries]


def _read(entry: str) -> ForeignDag:
    head, *parts = _FILE.split(entry)
    first, *lines = head.splitlines()
    repository = first.split()[0]
    found = dict[str, list[str]]()
    for line in lines:
        key, _, value = line.partition(": ")
        found.setdefault(key, []).append(value)
    dag = ForeignDag(f"{repository}: {found['path'][0]}", root=found.get("root", [""])[0])
    if "nodes" in found:
        dag.nodes, dag.arcs = int(found["nodes"][0]), int(found["arcs"][0])
    dag.faults = [_finding(value) for value in found.get("fault", [])]
    dag.warnings = [_finding(value) for value in found.get("warning", [])]
    for name, is_open, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        dag.files[name] = text.removesuffix("\n") if is_open else text
    return dag


def _finding(value: str) -> tuple[str, int, str]:
    file, line, words = value.split(" ", 2)
    return file, int(line), words
