"""Renderer: makes the jobs of a node from its submit description, with all macros expanded.

Macros refer to the node and its state, such as its retry (`NodeContext`). A node with several
`queue` statements or a count gets a list of jobs. Checks before the match get the fields of its
first jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from matching.descriptions.macro_functions import SEED, UNKNOWN
from matching.descriptions.macros import Budget, MacroError, Scopes, parse_template
from matching.task_queues.needs import Needs
from wms.core.errors import PilotageError
from wms.jobs.description.commands import FIELDS, SYNONYMS
from wms.jobs.description.compiled_description import CompiledDescription
from wms.jobs.description.job_ad import GIVEN, PARENTS, RETRY, depends_on_job_or_parents
from wms.jobs.description.job_fields import checked_length
from wms.jobs.description.job_paths import JobPaths
from wms.jobs.description.needs import is_need
from wms.jobs.description.queue_statement import MAX_JOBS, BadQueue, Files
from wms.jobs.description.renderer_inputs import CannotRender, CommandSet, Identity, SiteValues
from wms.jobs.description.retry_changes import changes_for_retry
from wms.jobs.description.stages import Stage, stages_of
from wms.jobs.description.submit_file import SubmitFile
from wms.jobs.directives import fails_at_wall_limit
from wms.jobs.specs import CLUSTER_MARK, JobSpec, SharedValues

__all__ = ["CannotRender", "Identity", "NodeContext", "Renderer", "SiteValues"]

_COMMANDS = FIELDS | SYNONYMS.keys() | {"universe"}
_CLUSTER_NAMES = frozenset({"cluster", "clusterid"})
_PARENTS = "dag_parent_names"
_NAMES_KNOWN_LATE = ("dagmanjobid", "dag_status", "failed_count", _PARENTS)
_SINGLE_JOB_VALUES = {
    "process": "0", "procid": "0", "item": "", "itemindex": "0", "step": "0", "row": "0",
    "cluster": CLUSTER_MARK, "clusterid": CLUSTER_MARK,
}  # fmt: skip
_UNKNOWN_SINGLE_JOB_VALUES = {**_SINGLE_JOB_VALUES, **dict.fromkeys(_CLUSTER_NAMES, UNKNOWN)}
_UNKNOWN_LATE_VALUES = dict.fromkeys((*_NAMES_KNOWN_LATE, SEED), UNKNOWN)
#: The attributes that are columns of the job as well.
_OF_ROW = {"DAGNodeName": "name", "DAGManJobId": "topic_key"}
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_NAMES: frozenset[str] = frozenset()
#: So many programs of a description are kept: one for each queue statement and each set of commands
#: that come with nodes.
_MAX_COMPILED = 256
#: What the macros of a node may take is as much as those of one text, and this for each job.
_STEPS_PER_JOB = 16 * 1024
#: Limit on the text of all jobs of a node together, which are made and stored at once.
MAX_TEXT_OF_NODE = 128 * 1024 * 1024


# A tuple, because one is made of every node of every DAG.
class NodeContext(NamedTuple):
    """A node and its state, as the macros of its submit description may refer to them.

    `variables` are the VARS before the description, `appended` those behind it; a name that begins
    with `+` is an attribute. `parent_names` is called only where a macro needs it. `changes` are
    those of RETRY, applied `retry_number` times.
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
    """A context prepared for rendering: names in lower case, in layers by precedence."""

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
    #: Limit on macro expansion for all jobs of the node together.
    budget: Budget


class Renderer:
    """Makes the jobs of all nodes with one description, which is compiled once.

    Without `site_values` only what does not depend on the site is rendered. `bind` makes the final
    needs of every job. `files` are those that queue statements may read. With `is_late` references
    to the site are left to the claim, and `scope_id` tells whose sites the jobs may run at.
    """

    def __init__(
        self,
        description: SubmitFile,
        identity: Identity,
        site_values: SiteValues | None = None,
        *,
        files: Files | None = None,
        bind: Callable[[Needs], Needs] | None = None,
        is_late: bool = False,
        scope_id: int | None = None,
    ) -> None:
        self._identity = identity
        self._site_values = site_values
        self._files = files
        self._bind = bind
        self._is_late = is_late
        self._scope_id = scope_id
        self._stages = list(stages_of(description))
        self._faulty = frozenset(description.faulty)
        given = {name for stage in self._stages for name in stage.commands}
        #: Names that VARS may set before the description, or behind it.
        self._missing = _COMMANDS - given
        self._appendable = _COMMANDS | given
        self._compiled: dict[tuple[object, ...], CompiledDescription] = {}
        self._shared: dict[tuple[object, ...], SharedValues] = {}
        self._job_paths = JobPaths()
        texts = (t for s in self._stages for t in (*s.commands.values(), *s.attributes.values()))
        self._uses_parents = any(
            _PARENTS in text.lower() or depends_on_job_or_parents(text) for text in texts
        )

    def jobs(self, context: NodeContext) -> list[JobSpec]:
        """Jobs of a node, at least one and at most MAX_JOBS. Raises CannotRender."""
        specs: list[JobSpec] = []
        try:
            node = self._node(context)
            remaining_characters = MAX_TEXT_OF_NODE
            for stage_index, stage in enumerate(self._stages):
                remaining_characters = self._add_jobs(
                    node, stage_index, stage, specs, remaining_characters
                )
            if not specs:
                raise BadQueue("its queue statements make no job")
        except CannotRender as error:
            raise CannotRender(f"node {context.node_name}: {error}", *error.names) from error
        except (ValueError, PilotageError) as error:
            raise CannotRender(f"node {context.node_name}: {error}") from error
        return specs

    def fields(self, context: NodeContext, *, most: int) -> Iterator[dict[str, Any]]:
        """Fields of the first jobs, without attributes and directory, for checks.

        Raises CannotRender.
        """
        node = self._node(context)
        try:
            for stage_index, stage in enumerate(self._stages):
                compiled = self._compiled_for(stage_index, node)
                for queue_values in islice(self._queue_values(node, stage), most):
                    values, attributes = self._values(node, stage, queue_values)
                    fields = compiled.fields(values, attributes, node.budget)
                    self._job_paths.workspace_paths(fields, context.directory)
                    yield fields
        except (BadQueue, MacroError) as error:
            raise CannotRender(str(error)) from error

    def only_arguments_vary(self, context: NodeContext) -> bool:
        """Whether nodes with values for the names of this one have jobs that differ in their
        arguments alone, where the values stand as they are.

        Raises CannotRender.
        """
        if len(self._stages) != 1 or not self._stages[0].queue.is_single:
            return False
        node = self._node(context)
        has_needs = any(map(is_need, (*node.attributes, *node.appended_attributes)))
        return not has_needs and self._compiled_for(0, node).only_arguments_vary

    def _add_jobs(
        self,
        node: _Node,
        stage_index: int,
        stage: Stage,
        specs: list[JobSpec],
        remaining_characters: int,
    ) -> int:
        """Add the jobs of a queue statement; the number of characters that later jobs may have."""
        compiled = self._compiled_for(stage_index, node)
        is_same = not node.has_macros and stage.own_names.isdisjoint(compiled.names)
        spec: JobSpec | None = None
        length = 0
        for queue_values in self._queue_values(node, stage, first=len(specs)):
            if len(specs) == MAX_JOBS:
                raise BadQueue(f"a node has at most {MAX_JOBS} jobs")
            if spec is None or not is_same:
                spec = self._spec(node, compiled, *self._values(node, stage, queue_values))
                length = checked_length(spec)
            remaining_characters -= length
            if remaining_characters < 0:
                raise BadQueue(f"its jobs have more than {MAX_TEXT_OF_NODE} characters in all")
            specs.append(spec)
        return remaining_characters

    def _queue_values(self, node: _Node, stage: Stage, first: int = 0) -> Iterator[dict[str, str]]:
        """Values that the queue statement gives to each job."""
        if stage.queue.is_single and not first:
            yield _SINGLE_JOB_VALUES if self._site_values else _UNKNOWN_SINGLE_JOB_VALUES
            return
        cluster = CLUSTER_MARK if self._site_values else UNKNOWN
        if self._site_values is None and stage.queue.reads_files:
            yield {
                **_UNKNOWN_SINGLE_JOB_VALUES,
                **dict.fromkeys(stage.own_names - _UNKNOWN_SINGLE_JOB_VALUES.keys(), UNKNOWN),
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
                has_macros = has_macros or "$" in value or depends_on_job_or_parents(value)
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
        """Names that DAGMan always defines."""
        given = {
            "job": context.node_name,
            "node": context.node_name,
            "retry": str(context.retry_number),
            RETRY: str(context.retry_number),
        }
        if self._site_values is None:
            given.update(_UNKNOWN_LATE_VALUES)
            return given
        given["dagmanjobid"] = str(context.dag_id)
        # Not of the retry: what was drawn for a job stays.
        given[SEED] = f"{context.dag_id}/{context.node_name}"
        given["dag_status"] = str(context.dag_status)
        given["failed_count"] = str(context.failed_count)
        if needs_parents or self._uses_parents:
            given[_PARENTS] = given[PARENTS] = ",".join(context.parent_names())
        return given

    def _values(
        self, node: _Node, stage: Stage, queue_values: Mapping[str, str]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Values of all names, and the attributes from the node, macros expanded."""
        values = {**node.given, **node.variables, **node.appended, **queue_values}
        attributes = node.attributes
        if attributes or node.appended_attributes:
            own = {name.lower() for name in stage.attributes}
            attributes = {n: text for n, text in attributes.items() if n.lower() not in own}
            attributes |= node.appended_attributes
        if not node.has_macros:
            return _with_attributes(values, attributes), attributes
        layers = (queue_values, node.appended, stage.commands, node.variables, node.given)
        scopes = Scopes(*layers, budget=node.budget)
        for layer in (3, 1):
            for name, text in layers[layer].items():
                if "$" in text and name not in queue_values:
                    values[name] = scopes.value(layer, name)
        filled = {n: scopes.expand(parse_template(text)) for n, text in attributes.items()}
        return _with_attributes(values, filled), filled

    def _compiled_for(self, stage_index: int, node: _Node) -> CompiledDescription:
        context = node.context
        changes = context.changes if context.retry_number else ()
        key = (stage_index, node.outer, *(map(tuple, changes)), changes and context.retry_number)
        compiled = self._compiled.get(key)
        if compiled is None:
            source = _source(self._stages[stage_index], node, changes, self._faulty)
            if len(self._compiled) >= _MAX_COMPILED:
                self._compiled.clear()
            compiled = CompiledDescription(
                source, self._identity, self._site_values, is_late=self._is_late
            )
            self._compiled[key] = compiled
        return compiled

    def _spec(
        self,
        node: _Node,
        compiled: CompiledDescription,
        values: Mapping[str, str],
        given: Mapping[str, str],
    ) -> JobSpec:
        context = node.context
        fields = compiled.fields(values, given, node.budget)
        fields["attributes"] = {
            **compiled.attributes(values, given, node.budget),
            "DAGNodeName": context.node_name,
            "DAGManJobId": context.dag_id,
            "DAGManNodeRetry": context.retry_number,
        }
        mentions = node.has_macros or not _CLUSTER_NAMES.isdisjoint(compiled.names)
        fields |= self._job_paths.workspace_paths(
            fields, context.directory, mentions_cluster=mentions
        )
        if any(name.lower() == "allowed_execute_duration" for name, *_ in context.changes):
            # The node says what follows: a retry with more time.
            fields["directives"] = fails_at_wall_limit(fields["directives"])
        own_sites = set(fields["needs"].sites)
        # One that asks for sites itself, and has failed at all of them, may go there again.
        if context.avoided_sites and not (own_sites and own_sites <= set(context.avoided_sites)):
            banned = {*fields["needs"].banned_sites, *context.avoided_sites}
            fields["needs"] = replace(fields["needs"], banned_sites=tuple(sorted(banned)))
        if self._bind is not None:
            fields["needs"] = self._bind(fields["needs"])
        fields["avoided_hosts"] = context.avoided_hosts
        if self._scope_id is not None:
            fields["late"] = {"scope": self._scope_id, **fields.get("late", {})}
        fields["shared"] = self._shared_values(context, compiled, given)
        return JobSpec(name=context.node_name, mentions_cluster=mentions, **fields)

    def _shared_values(
        self, context: NodeContext, compiled: CompiledDescription, given: Mapping[str, str]
    ) -> SharedValues:
        """Common part of the jobs of nodes like this one, made once."""
        key = compiled, context.directory, frozenset(given)
        shared = self._shared.get(key)
        if shared is None:
            if len(self._shared) >= _MAX_COMPILED:
                self._shared.clear()
            values = compiled.shared(given)
            values |= self._job_paths.shared_paths(values, context.directory)
            if "needs" in values and self._bind is not None:
                values["needs"] = self._bind(values["needs"])
            if self._scope_id is not None:
                values["late"] = {"scope": self._scope_id, **values.get("late", {})}
            values["attributes"]["DAGManNodeRetry"] = 0
            shared = self._shared[key] = SharedValues.of(values, _OF_ROW)
        return shared


def _source(
    stage: Stage, node: _Node, changes: Sequence[Sequence[str]], faulty: frozenset[str]
) -> CommandSet:
    """Commands at a queue statement for nodes like this one, with the changes of their retry."""
    commands = {n: text for n, text in stage.commands.items() if n not in stage.own_names}
    attributes = dict(stage.attributes)
    known = {*commands, *node.outer, *(f"+{name.lower()}" for name in attributes)}
    for name, *_ in changes:
        # A change gives what the description does not.
        if name.lower() not in known and name.startswith("+"):
            attributes[name[1:]] = ""
        elif name.lower() not in known:
            commands[name.lower()] = ""
    changed = changes_for_retry(changes, node.context.retry_number)
    return CommandSet(commands, attributes, node.outer, changed, faulty)


def _with_attributes(values: dict[str, str], attributes: Mapping[str, str]) -> dict[str, str]:
    """Values with the node's attributes added, for expressions that refer to these."""
    values.update((f"{GIVEN}{name.lower()}", text) for name, text in attributes.items())
    return values
