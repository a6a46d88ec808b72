"""Location of a submit command or attribute of a node, by file and line, for faults and warnings.

Also its value in the submit description.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wms.dags.language.spec import NodeSpec
from wms.jobs.description.submit_file import SubmitFile

_ONLY_MACRO = re.compile(r'\s*"?\$\(([A-Za-z0-9_.]+)(?::[^()]*)?\)"?\s*')


def location_of_command(
    names: Iterable[str], node: NodeSpec, submit_file: SubmitFile
) -> tuple[str, int | None]:
    """File and line of the first of these commands and attributes that a node has.

    That is in the DAG file for values from the node's VARS, given directly or by the macro that the
    whole value consists of; and the node's own line there for what is not given.
    """
    variables = node.variables or {}
    for name in names:
        text = command_text(name, submit_file)
        macro = _ONLY_MACRO.fullmatch(text)
        for variable in (name.lower(), macro.group(1).lower() if macro else ""):
            if variable in variables and (not text or variables[variable].is_appended or macro):
                return variables[variable].location
        if text:
            return submit_file.file, submit_file.lines.get(name.removeprefix("+").lower())
    return node.location


def command_text(name: str, submit_file: SubmitFile) -> str:
    """Value of a command or, with a leading plus, of an attribute; empty where it is not given."""
    name = name.lower()
    given = [(submit_file.commands, submit_file.attributes)]
    given += [(queue.commands, queue.attributes) for queue in reversed(submit_file.queues)]
    spelling = submit_file.spellings.get(name[1:], "")
    texts = (
        attributes.get(spelling) if name.startswith("+") else commands.get(name)
        for commands, attributes in given
    )
    return next(filter(None, texts), "")
