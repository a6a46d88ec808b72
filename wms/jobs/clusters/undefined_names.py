"""Macros of a description that nothing defines: mostly misspelt columns of its table.

Also all names that a description's macros refer to.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import suppress

from matching.descriptions.macros import (
    Call,
    MacroError,
    Slot,
    Template,
    names_in,
    parse_template,
)
from wms.jobs.description.stages import Stage, stages_of
from wms.jobs.description.submit_file import SubmitFile

#: What every job has.
_GIVEN = frozenset({"cluster", "clusterid", "dollar"})


def undefined_names(description: SubmitFile) -> list[tuple[str, Sequence[str]]]:
    """Faults, each with the command at fault, of macros without value and without default."""
    faults: dict[tuple[str, str], None] = {}
    for stage in stages_of(description):
        known = _GIVEN | stage.own_names | stage.commands.keys() | set(stage.queue.names)
        texts = {**stage.commands, **{f"+{n}": text for n, text in stage.attributes.items()}}
        for command, text in texts.items():
            for name in _bare_names(text):
                if name not in known and f"$({name}:)" not in text.lower():
                    faults.setdefault((_message(command, name, stage), command))
    return [(message, [command]) for message, command in faults]


def _message(command: str, name: str, stage: Stage) -> str:
    columns = stage.queue.names if stage.queue.kind else []
    close = difflib.get_close_matches(name, [*columns, *stage.commands], 1)
    if close:
        return f"{command}: nothing defines $({name}); did you mean $({close[0]})?"
    if columns:
        return f"{command}: there is no column {name}; there are {', '.join(columns[:20])}"
    return f"{command}: nothing defines $({name})"


def _bare_names(text: str) -> Iterator[str]:
    """Names in a text that have no default."""
    if "$" not in text:
        return
    try:
        yield from _of_template(parse_template(text))
    except MacroError:
        # Told by the parser, with its line.
        return


def _of_template(template: Template) -> Iterator[str]:
    for part in template:
        if isinstance(part, Call):
            for each in part.arguments:
                yield from _of_template(each)
        elif isinstance(part, Slot) and _is_bare(part):
            yield str(part.name)


def _is_bare(slot: Slot) -> bool:
    return isinstance(slot.name, str) and not slot.default and not slot.takes_empty


def macros_in(description: SubmitFile) -> set[str]:
    """Names that the texts of a description refer to."""
    texts = [*description.commands.values(), *description.attributes.values()]
    for queue in description.queues:
        texts += [*queue.commands.values(), *queue.attributes.values(), queue.count, *queue.items]
    used: set[str] = set()
    for text in texts:
        if "$" in text:
            with suppress(MacroError):
                used |= names_in(parse_template(text))
    return used
