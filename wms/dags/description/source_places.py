"""Where what a node says is written."""

from __future__ import annotations

import re
from collections.abc import Iterable

from wms.dags.description.submit_file import SubmitFile
from wms.dags.language.spec import NodeSpec

_ONLY_MACRO = re.compile(r'\s*"?\$\(([A-Za-z0-9_.]+)(?::[^()]*)?\)"?\s*')


def place_of(
    names: Iterable[str], node: NodeSpec, submit_file: SubmitFile
) -> tuple[str, int | None]:
    """Where the first of these commands and attributes of a node stands, as file and line.

    It is in the DAG file for what the node's VARS set, by themselves or as the macro that a value
    consists of; and the node's own line there for what is not given.
    """
    variables = node.variables or {}
    for name in names:
        text = text_of(name, submit_file)
        macro = _ONLY_MACRO.fullmatch(text)
        for variable in (name.lower(), macro.group(1).lower() if macro else ""):
            if variable in variables and (not text or variables[variable].is_appended or macro):
                return variables[variable].place
        if text:
            return submit_file.file, submit_file.lines.get(name.removeprefix("+").lower())
    return node.place


def text_of(name: str, submit_file: SubmitFile) -> str:
    """The value of a command or, behind a plus, of an attribute; empty where it is not given."""
    name = name.lower()
    given = [(submit_file.commands, submit_file.attributes)]
    given += [(queue.commands, queue.attributes) for queue in reversed(submit_file.queues)]
    spelling = submit_file.spellings.get(name[1:], "")
    texts = (
        attributes.get(spelling) if name.startswith("+") else commands.get(name)
        for commands, attributes in given
    )
    return next(filter(None, texts), "")
