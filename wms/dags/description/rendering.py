"""From a node and its submit description to its jobs: every macro filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from matching.macro_functions import SEED, UNKNOWN
from matching.macros import Budget, MacroError, Scopes, parse_template
from matching.needs import Needs
from wms.core.errors import PilotageError
from wms.dags.description.commands import FIELDS, SYNONYMS
from wms.dags.description.compiled_description import (
    CannotRender,
    Identity,
    Program,
    Source,
    Surroundings,
)
from wms.dags.description.job_ad import GIVEN, PARENTS, RETRY, is_special
from wms.dags.description.job_fields import check_size, text_length
from wms.dags.description.job_paths import JobPlaces
from wms.dags.description.queue_statement import MAX_JOBS, BadQueue, Files, QueueStatement
from wms.dags.description.retry_changes import changes_after
from wms.dags.description.submit_file import SubmitFile
from wms.jobs.specs import CLUSTER_MARK, JobSpec

__all__ = ["CannotRender", "Identity", "NodeContext", "Renderer", "Surroundings"]

_COMMANDS = FIELDS | SYNONYMS.keys() | {"universe"}
_CLUSTER_NAMES = frozenset({"cluster", "clusterid"})
#: What the queue statement tells a job of its place in the list.
_PROCESS_NAMES = frozenset({"process", "procid", "item", "itemindex", "step", "row"})
_PARENTS = "dag_parent_names"
_LATE = ("dagmanjobid", "dag_status", "failed_count", _PARENTS)
_OF_ONE = {
    "process": "0", "procid": "0", "item": "", "itemindex": "0", "step": "0", "row": "0",
    "cluster": CLUSTER_MARK, "clusterid": CLUSTER_MARK,
}  # fmt: skip
_UNKNOWN_OF_ONE = {**_OF_ONE, **dict.fromkeys(_CLUSTER_NAMES, UNKNOWN)}
_LATE_VALUES = dict.fromkeys((*_LATE, SEED), UNKNOWN)
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_NAMES: frozenset[str] = frozenset()
_ONE = QueueStatement()
#: So many programs of a description are kept: one for each queue statement and each set of commands
#: that come with nodes.
_MOST_PROGRAMS = 256
#: What the macros of a node may take is as much as those of one text, and this for each job.
_STEPS_PER_JOB = 16 * 1024
#: What all jobs of a node carry together: they are made and stored at once.
MAX_TEXT_OF_NODE = 128 * 1024 * 1024


# A tuple, because one is made of every node of every DAG.
class NodeContext(NamedTuple):
    """A node and its moment, as the macros of its submit description may refer to them.

    `variables` are the VARS before the description, `appended` those behind it; a name that begins
    with `+` is an attribute. `parent_names` are asked for only where a macro needs them. `changes`
    are those of RETRY, made `retry_number` times.
    """

    node_name: str
    dag_id: int
    retry_number: int = 0
    variables: Mapping[str, str] = _NOTHING
    appended: Mapping[str, str] = _NOTHING
    dag_status: int = 0
    failed_count: int = 0
    parent_names: Callable[[], Iterable[str]] = tuple
    directory: str = ""
    changes: Sequence[Sequence[str]] = ()
    avoided_sites: Sequence[str] = ()
    avoided_hosts: tuple[str, ...] = ()


class _Node(NamedTuple):
    """A context made ready: names in lower case, in the layers in which they count."""

    context: NodeContext
    given: dict[str, str]
    variables: dict[str, str]
    appended: dict[str, str]
    #: Attributes from VARS, those before the description and those behind it.
    attributes: dict[str, str]
    appended_attributes: dict[str, str]
    #: Names whose values come with the node, whatever the description says.
    outer: frozenset[str]
    has_macros: bool
    #: What may be filled in for the node, all of its jobs together.
    budget: Budget


@dataclass(frozen=True, slots=True)
class _Stage:
    """A queue statement with all that holds at it; `own_names` are set by it alone."""

    queue: QueueStatement
    commands: dict[str, str]
    attributes: dict[str, str]
    own_names: frozenset[str]


class Renderer:
    """Makes the jobs of all nodes with one description, which is compiled once.

    `surroundings` of None look only at what is known before the site is. `bind` is the last word
    on the needs of every job. `files` are what queue statements may read.
    """

    def __init__(
        self,
        description: SubmitFile,
        identity: Identity,
        surroundings: Surroundings | None = None,
        *,
        files: Files | None = None,
        bind: Callable[[Needs], Needs] | None = None,
    ) -> None:
        self._identity = identity
        self._surroundings = surroundings
        self._files = files
        self._bind = bind
        self._stages = list(_stages(description))
        given = {name for stage in self._stages for name in stage.commands}
        #: What VARS set before the description, or behind it, instead of it.
        self._missing = _COMMANDS - given
        self._appendable = _COMMANDS | given
        self._programs: dict[tuple[object, ...], Program] = {}
        self._places = JobPlaces()
        texts = (t for s in self._stages for t in (*s.commands.values(), *s.attributes.values()))
        self._asks_for_parents = any(_PARENTS in text.lower() or is_special(text) for text in texts)

    def jobs(self, context: NodeContext) -> list[JobSpec]:
        """The jobs of a node, one at least and at most MAX_JOBS. Raises CannotRender."""
        specs: list[JobSpec] = []
        try:
            node = self._node(context)
            room = MAX_TEXT_OF_NODE
            for place, stage in enumerate(self._stages):
                room = self._add_jobs(node, place, stage, specs, room)
            if not specs:
                raise BadQueue("its queue statements make no job")
        except CannotRender as error:
            raise CannotRender(f"node {context.node_name}: {error}", *error.names) from error
        except (ValueError, PilotageError) as error:
            raise CannotRender(f"node {context.node_name}: {error}") from error
        return specs

    def fields(self, context: NodeContext, *, most: int) -> Iterator[dict[str, Any]]:
        """The fields of the first jobs, without attributes and the node's place, to be checked.

        Raises CannotRender.
        """
        node = self._node(context)
        try:
            for place, stage in enumerate(self._stages):
                program = self._program(place, node)
                for live in islice(self._lives(node, stage), most):
                    values, attributes = self._values(node, stage, live)
                    fields = program.fields(values, attributes, node.budget)
                    self._places.placed(fields, context.directory)
                    yield fields
        except (BadQueue, MacroError) as error:
            raise CannotRender(str(error)) from error

    def _add_jobs(
        self, node: _Node, place: int, stage: _Stage, specs: list[JobSpec], room: int
    ) -> int:
        """Make the jobs of a queue statement; so much text may follow them."""
        program = self._program(place, node)
        is_same = not node.has_macros and stage.own_names.isdisjoint(program.names)
        spec: JobSpec | None = None
        length = 0
        for live in self._lives(node, stage, first=len(specs)):
            if len(specs) == MAX_JOBS:
                raise BadQueue(f"a node has at most {MAX_JOBS} jobs")
            if spec is None or not is_same:
                spec = self._spec(node, program, *self._values(node, stage, live))
                length = text_length(spec)
            room -= length
            if room < 0:
                raise BadQueue(f"its jobs have more than {MAX_TEXT_OF_NODE} characters in all")
            specs.append(spec)
        return room

    def _lives(self, node: _Node, stage: _Stage, first: int = 0) -> Iterator[dict[str, str]]:
        """The values that the queue statement gives to one job after the other."""
        if stage.queue.is_single and not first:
            yield _OF_ONE if self._surroundings else _UNKNOWN_OF_ONE
            return
        cluster = CLUSTER_MARK if self._surroundings else UNKNOWN
        if self._surroundings is None and stage.queue.reads_files:
            yield {
                **_UNKNOWN_OF_ONE,
                **dict.fromkeys(stage.own_names - _UNKNOWN_OF_ONE.keys(), UNKNOWN),
            }
            return
        layers = (node.appended, stage.commands, node.variables, node.given)
        scopes = Scopes(*layers, budget=node.budget)
        rows = stage.queue.rows(
            lambda text: scopes.expand(parse_template(text)) if "$" in text else text,
            self._files,
            node.budget,
        )
        for process, (step, row, items) in enumerate(rows, first):
            node.budget.add(_STEPS_PER_JOB)
            number, index = str(process), str(row)
            yield {
                "process": number,
                "procid": number,
                "step": str(step),
                "row": index,
                "itemindex": index,
                "cluster": cluster,
                "clusterid": cluster,
                **items,
            }

    def _node(self, context: NodeContext) -> _Node:
        if not context.variables and not context.appended:
            return _Node(
                context, self._builtins(context, False), {}, {}, {}, {}, _NO_NAMES, False, Budget()
            )
        plain: tuple[dict[str, str], dict[str, str]] = {}, {}
        attributes: tuple[dict[str, str], dict[str, str]] = {}, {}
        outer: set[str] = set()
        has_macros = False
        for layer, variables in enumerate((context.variables, context.appended)):
            for name, value in variables.items():
                has_macros = has_macros or "$" in value or is_special(value)
                if name[0] == "+":
                    attributes[layer][name[1:]] = value
                    continue
                lowered = name.lower()
                plain[layer][lowered] = value
                if lowered in (self._appendable if layer else self._missing):
                    outer.add(lowered)
        given = self._builtins(context, has_macros)
        return _Node(context, given, *plain, *attributes, frozenset(outer), has_macros, Budget())

    def _builtins(self, context: NodeContext, needs_parents: bool) -> dict[str, str]:
        """The names that DAGMan always gives a value."""
        given = {
            "job": context.node_name,
            "node": context.node_name,
            "retry": str(context.retry_number),
            RETRY: str(context.retry_number),
        }
        if self._surroundings is None:
            given.update(_LATE_VALUES)
            return given
        given["dagmanjobid"] = str(context.dag_id)
        # Not of the retry: what was drawn for a job stays.
        given[SEED] = f"{context.dag_id}/{context.node_name}"
        given["dag_status"] = str(context.dag_status)
        given["failed_count"] = str(context.failed_count)
        if needs_parents or self._asks_for_parents:
            given[_PARENTS] = given[PARENTS] = ",".join(context.parent_names())
        return given

    def _values(
        self, node: _Node, stage: _Stage, live: Mapping[str, str]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """The values of all names, and the attributes that the node gives, macros filled in."""
        values = {**node.given, **node.variables, **node.appended, **live}
        attributes = node.attributes
        if attributes or node.appended_attributes:
            own = {name.lower() for name in stage.attributes}
            attributes = {n: text for n, text in attributes.items() if n.lower() not in own}
            attributes |= node.appended_attributes
        if not node.has_macros:
            return _with_attributes(values, attributes), attributes
        layers = (live, node.appended, stage.commands, node.variables, node.given)
        scopes = Scopes(*layers, budget=node.budget)
        for layer in (3, 1):
            for name, text in layers[layer].items():
                if "$" in text and name not in live:
                    values[name] = scopes.value(layer, name)
        filled = {n: scopes.expand(parse_template(text)) for n, text in attributes.items()}
        return _with_attributes(values, filled), filled

    def _program(self, place: int, node: _Node) -> Program:
        context = node.context
        changes = context.changes if context.retry_number else ()
        key = (place, node.outer, *(map(tuple, changes)), changes and context.retry_number)
        program = self._programs.get(key)
        if program is None:
            source = _source(self._stages[place], node, changes)
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs.clear()
            program = Program(source, self._identity, self._surroundings)
            self._programs[key] = program
        return program

    def _spec(
        self, node: _Node, program: Program, values: Mapping[str, str], given: Mapping[str, str]
    ) -> JobSpec:
        context = node.context
        fields = program.fields(values, given, node.budget)
        attributes = program.attributes(values, given, node.budget)
        attributes["DAGNodeName"] = context.node_name
        attributes["DAGManJobId"] = context.dag_id
        attributes["DAGManNodeRetry"] = context.retry_number
        fields["attributes"] = attributes
        mentions = node.has_macros or not _CLUSTER_NAMES.isdisjoint(program.names)
        fields |= self._places.placed(fields, context.directory, mentions_cluster=mentions)
        if context.avoided_sites:
            banned = {*fields["needs"].banned_sites, *context.avoided_sites}
            fields["needs"] = replace(fields["needs"], banned_sites=tuple(sorted(banned)))
        if self._bind is not None:
            fields["needs"] = self._bind(fields["needs"])
        fields["avoided_hosts"] = context.avoided_hosts
        spec = JobSpec(name=context.node_name, mentions_cluster=mentions, **fields)
        check_size(spec)
        return spec


def _source(stage: _Stage, node: _Node, changes: Sequence[Sequence[str]]) -> Source:
    """What holds at a queue statement for nodes like this one, with what their retry changes."""
    commands = {n: text for n, text in stage.commands.items() if n not in stage.own_names}
    attributes = dict(stage.attributes)
    known = {*commands, *node.outer, *(f"+{name.lower()}" for name in attributes)}
    for name, *_ in changes:
        # A change gives what the description does not.
        if name.lower() not in known and name.startswith("+"):
            attributes[name[1:]] = ""
        elif name.lower() not in known:
            commands[name.lower()] = ""
    changed = changes_after(changes, node.context.retry_number)
    return Source(commands, attributes, node.outer, changed)


def _with_attributes(values: dict[str, str], attributes: Mapping[str, str]) -> dict[str, str]:
    """The values with the node's attributes, for expressions that refer to these."""
    values.update((f"{GIVEN}{name.lower()}", text) for name, text in attributes.items())
    return values


def _stages(description: SubmitFile) -> Iterator[_Stage]:
    """The queue statements, each with the commands and attributes that hold at it."""
    commands, attributes = description.commands, description.attributes
    for queue in description.queues or [_ONE]:
        commands = {**commands, **queue.commands}
        again = {name.lower() for name in queue.attributes}
        kept = {name: text for name, text in attributes.items() if name.lower() not in again}
        attributes = {**kept, **queue.attributes}
        names = _PROCESS_NAMES.union(name.lower() for name in queue.variables)
        yield _Stage(queue, commands, attributes, names)
