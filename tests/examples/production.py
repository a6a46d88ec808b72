"""Runner of an example folder's DAG by plain processes, to test its files without a server.

It reads what the example uses of the languages and no more: the product has its own parser.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path


@dataclass
class Node:
    name: str
    commands: dict[str, str]
    macros: dict[str, str]
    parents: set[str] = field(default_factory=set)
    retries: int = 0

    def value(self, key: str, environment: dict[str, str] | None = None) -> str:
        """The command's value with every reference replaced; an unknown one is a KeyError."""
        text = re.sub(r"\$ENV\((\w+)\)", lambda m: (environment or {})[m[1]], self.get(key))
        text = re.sub(r"\$\$\(Name\)", "test-site", text)
        return re.sub(r"(?<!\$)\$\((\w+)\)", lambda m: self.macros[m[1]], text)

    def get(self, key: str) -> str:
        return self.commands.get(key, "")

    def files(self, key: str) -> list[str]:
        return [name.strip() for name in self.value(key).split(",") if name.strip()]


def read_description(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    assert lines.pop() == "queue"
    pairs = (line.split("=", 1) for line in lines)
    return {key.strip().lower(): value.strip() for key, value in pairs}


def read_nodes(dag: Path, *, dag_id: str) -> dict[str, Node]:
    """Read the DAG file: JOB lines first, since any line may name a node of a later one."""
    lines = [shlex.split(line, comments=True) for line in dag.read_text().splitlines()]
    nodes = {}
    for _, name, description in (words for words in lines if words[:1] == ["JOB"]):
        macros = {"JOB": name, "RETRY": "0", "DAGManJobId": dag_id}
        nodes[name] = Node(name, read_description(dag.parent / description), macros)
    for words in lines:
        match words:
            case ["VARS", name, *pairs]:
                nodes[name].macros.update(pair.split("=", 1) for pair in pairs)
            case ["PARENT", parent, "CHILD", *children]:
                for child in children:
                    nodes[child].parents.add(parent)
            case ["RETRY", name, count]:
                nodes[name].retries = int(count)
            case ["JOB", *_] | []:
                pass
            case _:
                raise ValueError(f"the example has no such line: {words}")
    return nodes


class Production:
    """One submitted DAG: its file set, and one site with a working and an export area."""

    def __init__(self, folder: Path, base: Path, *, dag_id: str = "7", events: int) -> None:
        self.files, self.sandboxes = base / "files", base / "sandboxes"
        self.working_area, self.export_area = base / "site" / "work", base / "site" / "export"
        shutil.copytree(folder, self.files, ignore=shutil.ignore_patterns("__pycache__"))
        self.sandboxes.mkdir()
        self.nodes = read_nodes(self.files / "montecarlo.dag", dag_id=dag_id)
        for node in self.nodes.values():
            if "events" in node.macros:
                node.macros["events"] = str(events)

    def order(self) -> list[str]:
        graph = {node.name: node.parents for node in self.nodes.values()}
        return list(TopologicalSorter(graph).static_order())

    def prepare(self, name: str) -> tuple[list[str], Path, dict[str, str]]:
        """Make a fresh sandbox with the node's inputs; return command, directory, environment."""
        node = self.nodes[name]
        sandbox = self.sandboxes / f"{name}-{len(list(self.sandboxes.iterdir()))}"
        sandbox.mkdir()
        executable = node.value("executable")
        for path in [executable, *node.files("transfer_input_files")]:
            shutil.copy(self.files / path, sandbox / path)
        site = {
            "SiteWorkingArea": str(self.working_area),
            "SiteExportDir": str(self.export_area),
        }
        pairs = (pair.split("=", 1) for pair in node.value("environment", site).split(";") if pair)
        command = [sys.executable, executable, *node.value("arguments").split()]
        return command, sandbox, {"PATH": os.environ["PATH"], **dict(pairs)}

    def attempt(self, name: str) -> subprocess.CompletedProcess[str]:
        command, sandbox, environment = self.prepare(name)
        ended = subprocess.run(
            command, cwd=sandbox, env=environment, capture_output=True, text=True, check=False
        )
        if ended.returncode == 0:
            for path in self.nodes[name].files("transfer_output_files"):
                shutil.copy(sandbox / path, self.files / path)
        return ended

    def run(self, *names: str) -> None:
        for name in names:
            ended = self.attempt(name)
            assert ended.returncode == 0, f"{name}: {ended.stderr}"
