"""Stages of a submit description: each queue statement with the commands in force there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wms.jobs.description.queue_statement import QueueStatement
from wms.jobs.description.submit_file import SubmitFile

#: Names set by the queue statement: the job's position in the list.
_PROCESS_NAMES = frozenset({"process", "procid", "item", "itemindex", "step", "row"})
_SINGLE_QUEUE = QueueStatement()


@dataclass(frozen=True, slots=True)
class Stage:
    """A queue statement with the commands and attributes in force there; `own_names` are its
    variables.
    """

    queue: QueueStatement
    commands: dict[str, str]
    attributes: dict[str, str]
    own_names: frozenset[str]


def stages_of(description: SubmitFile) -> Iterator[Stage]:
    """Queue statements, each with the commands and attributes in force there."""
    commands, attributes = description.commands, description.attributes
    for queue in description.queues or [_SINGLE_QUEUE]:
        commands = {**commands, **queue.commands}
        reassigned = {name.lower() for name in queue.attributes}
        kept = {name: text for name, text in attributes.items() if name.lower() not in reassigned}
        attributes = {**kept, **queue.attributes}
        names = _PROCESS_NAMES.union(name.lower() for name in queue.variables)
        yield Stage(queue, commands, attributes, names)
