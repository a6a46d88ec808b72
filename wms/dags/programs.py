"""A submit description made ready for many nodes: what is the same for all is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from matching.macros import (
    STEPS_OF_DESCRIPTION,
    Budget,
    Flattener,
    Scopes,
    Slot,
    Template,
    names_in,
    parse_template,
)
from matching.needs import CPU_SEGMENTS_S, BadNeeds, Needs
from matching.substitution import Evaluator, expand_references, uses_macros
from wms.core.errors import PilotageError
from wms.dags.commands import FIELDS as FIELD_COMMANDS
from wms.dags.commands import SYNONYMS, universe_fault
from wms.dags.jobfields import FIELDS, JobField
from wms.dags.needs import COMMANDS as NEED_COMMANDS
from wms.dags.needs import is_need, read_needs

#: Stands for what is not known before the job is submitted, where a description is only checked.
UNKNOWN = "\ue001"
Values: TypeAlias = Mapping[str, str]
#: From the values of a node to a text, None if it is not known yet; the budget is the node's.
Fill: TypeAlias = Callable[[Values, Budget], str | None]
#: From a command's text to the one that RETRY changes it to.
Change: TypeAlias = Callable[[str], str]
_WITHOUT_ADS = Evaluator({}, {}, {})
_NEEDS = tuple(NEED_COMMANDS.values())


class CannotRender(PilotageError):
    """A job cannot be made of this node; the message says which value is wrong.

    `names` are the commands and attributes at fault, where they are known.
    """

    def __init__(self, message: str, *names: str) -> None:
        super().__init__(message)
        self.names = names


@dataclass(frozen=True, slots=True)
class Identity:
    """In whose name jobs are made, and the CPU time segments in force."""

    owner: str
    group: str = ""
    cpu_segments_s: Sequence[int] = CPU_SEGMENTS_S


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What references mean at the site of a DAG: `$ENV(...)` and `$$(...)`."""

    environment: Mapping[str, str] = field(default_factory=dict)
    match_attributes: Mapping[str, object] = field(default_factory=dict)
    evaluator: Callable[[str], str] = _WITHOUT_ADS


@dataclass(frozen=True, slots=True)
class Source:
    """What a program is made of: commands and attributes that hold at one queue statement.

    `outer` are commands whose texts come with the node, whatever the description says of them.
    `changes` are made to commands once these are filled in.
    """

    commands: Mapping[str, str]
    attributes: Mapping[str, str]
    outer: frozenset[str] = frozenset()
    changes: Mapping[str, Change] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a command or attribute: fixed, or filled in with the values of a node.

    None is a text that is not known yet.
    """

    name: str
    fixed: str | None
    fill: Fill | None
    names: frozenset[str]

    def get(self, values: Values, budget: Budget) -> str | None:
        """The text for a node with these values."""
        return self.fixed if self.fill is None else self.fill(values, budget)


class Program:
    """Makes the fields of jobs from the values of nodes.

    Without surroundings only what does not depend on the site is looked at. Raises CannotRender,
    also when it is made.
    """

    def __init__(
        self, source: Source, identity: Identity, surroundings: Surroundings | None
    ) -> None:
        self._identity = identity
        self._surroundings = surroundings
        self._used: dict[str, str] = {}
        budget = Budget(STEPS_OF_DESCRIPTION)
        self._commands, attributes = self._texts(source, budget)
        self._needed = [self._commands[name] for name in _NEEDS if name in self._commands]
        self._needed_attributes = {n: text for n, text in attributes.items() if is_need(n)}
        said = FIELD_COMMANDS | _macros_of(source)
        kept = {name: text for name, text in self._commands.items() if name not in said}
        kept |= attributes
        self._moving_attributes = [(n, text) for n, text in kept.items() if text.fill]
        self._moving = [
            (each, [self._commands[name] for name in each.commands if name in self._commands])
            for each in FIELDS
            if any(self._commands[name].fill for name in each.commands if name in self._commands)
        ]
        self._check_universe()
        moving = {each.name for each, _ in self._moving}
        self._fixed: dict[str, Any] = {}
        for each in FIELDS:
            if each.name not in moving:
                texts = [self._commands[name] for name in each.commands if name in self._commands]
                self._read(each, texts, {}, self._fixed, budget)
        self._fixed_attributes: dict[str, Any] = {
            name: text.fixed for name, text in kept.items() if text.fixed is not None
        }
        self._fixed_attributes |= self._used
        self._used = {}
        has_moving_needs = any(t.fill for t in (*self._needed, *self._needed_attributes.values()))
        self._needs = None if has_moving_needs else self._read_needs({}, {}, budget)
        every = (*self._commands.values(), *attributes.values())
        #: The names of all values that nodes may give it.
        self.names = frozenset().union(*(text.names for text in every))
        self.attribute_names = {name.lower(): name for name in attributes}

    def fields(
        self, values: Values, attributes: Mapping[str, str], budget: Budget
    ) -> dict[str, Any]:
        """The fields of the job, without its attributes and its place.

        `attributes` come with the node, their macros filled in, and win. What is filled in is
        counted in the budget. Raises CannotRender.
        """
        if self._used:
            self._used = {}
        fields = self._fixed.copy()
        for each, texts in self._moving:
            self._read(each, texts, values, fields, budget)
        if self._needs is not None and not any(map(is_need, attributes)):
            fields["needs"] = self._needs
        else:
            fields["needs"] = self._read_needs(values, attributes, budget)
        return fields

    def attributes(
        self, values: Values, attributes: Mapping[str, str], budget: Budget
    ) -> dict[str, Any]:
        """The attributes of the job whose fields were made last: what of the description is no
        field, and what it used of the site.
        """
        made = self._fixed_attributes.copy()
        for name, text in self._moving_attributes:
            made[name] = text.get(values, budget)
        for name, value in attributes.items():
            made.pop(self.attribute_names.get(name.lower(), ""), None)
            made[name] = value
        made.update(self._used)
        return made

    def _texts(self, source: Source, budget: Budget) -> tuple[dict[str, _Text], dict[str, _Text]]:
        known = {n: text for n, text in source.commands.items() if n not in source.outer}
        flattener = Flattener(known, budget)
        commands: dict[str, _Text] = {}
        for name in known:
            commands[name] = self._text(name, partial(flattener.value, name), source, budget)
        for name in source.outer:
            commands[name] = self._text(name, partial(_slot, name), source, budget)
        for synonym, name in SYNONYMS.items():
            if synonym in commands:
                commands.setdefault(name, replace(commands.pop(synonym), name=name))
        attributes = {
            name: self._text(f"+{name}", partial(flattener.flatten, text), source, budget)
            for name, text in source.attributes.items()
        }
        return commands, attributes

    def _text(
        self, name: str, flatten: Callable[[], Template], source: Source, budget: Budget
    ) -> _Text:
        try:
            template = flatten()
            finish = self._finisher(name, source.changes.get(name.lower()))
            names = frozenset(names_in(template))
            if not any(isinstance(part, Slot) for part in template):
                return _Text(name, finish("".join(map(str, template)), budget), None, names)
        except (ValueError, PilotageError) as error:
            raise CannotRender(f"{name}: {error}", name) from error
        fill = _filler(template)
        return _Text(name, None, lambda values, left: finish(fill(values, left), left), names)

    def _finisher(self, name: str, change: Change | None) -> Callable[[str, Budget], str | None]:
        """Fills in references to the site, where there may be some, and then changes the text."""
        has_references = not name.startswith("+") or is_need(name[1:])
        if self._surroundings is None:
            return lambda text, _: None if _is_unknown(text) else change(text) if change else text

        def finish(text: str, budget: Budget) -> str:
            if has_references and "$" in text:
                text = self._refer(text)
                budget.spend(len(text))
            return change(text) if change else text

        return finish

    def _refer(self, text: str) -> str:
        around = self._surroundings or Surroundings()
        expanded = expand_references(
            text,
            environment=around.environment,
            target=around.match_attributes,
            evaluator=around.evaluator,
        )
        self._used.update(expanded.used)
        return expanded.text

    def _check_universe(self) -> None:
        text = self._commands.get("universe")
        fault = universe_fault(text.fixed or "") if text is not None else ""
        if fault:
            raise CannotRender(fault, "universe")

    def _read(
        self,
        each: JobField,
        texts: Sequence[_Text],
        values: Values,
        into: dict[str, Any],
        budget: Budget,
    ) -> None:
        """Read a field; one that depends on what is not known yet stays out."""
        given: dict[str, str] = {}
        try:
            for text in texts:
                value = text.fixed if text.fill is None else text.fill(values, budget)
                if value is None:
                    return
                given[text.name] = value
            into[each.name] = each.read(given)
        except (ValueError, OverflowError, PilotageError) as error:
            raise CannotRender(str(error), *each.commands) from error

    def _read_needs(self, values: Values, attributes: Mapping[str, str], budget: Budget) -> Needs:
        commands = {text.name: text.get(values, budget) for text in self._needed}
        named = {n.lower(): text.get(values, budget) for n, text in self._needed_attributes.items()}
        named |= {name.lower(): value for name, value in attributes.items()}
        try:
            return read_needs(
                {name: text for name, text in commands.items() if text is not None},
                {
                    name: text
                    for name, text in named.items()
                    if text is not None and (self._surroundings or not _is_unknown(text))
                },
                owner=self._identity.owner,
                group=self._identity.group,
                segments_s=self._identity.cpu_segments_s,
            )
        except BadNeeds as error:
            raise CannotRender(str(error), *error.fields) from error
        except (ValueError, OverflowError, PilotageError) as error:
            raise CannotRender(str(error)) from error


def _slot(name: str) -> Template:
    return (Slot(name, ()),)


def _is_unknown(text: str) -> bool:
    return UNKNOWN in text or ("$" in text and uses_macros(text))


def _macros_of(source: Source) -> set[str]:
    """The commands that others use as macros: they are no attributes of the job."""
    used: set[str] = set()
    for text in (*source.commands.values(), *source.attributes.values()):
        if "$(" in text:
            used |= names_in(parse_template(text))
    return used


def _filler(template: Template) -> Callable[[Values, Budget], str]:
    """Fills in a template; in no time where its names and defaults are plain."""
    slots: list[tuple[str, str]] = []
    texts: list[str] = []
    for part in template:
        if isinstance(part, str):
            texts.append(part.replace("%", "%%"))
            continue
        if not isinstance(part.name, str) or any(isinstance(each, Slot) for each in part.default):
            return lambda values, budget: Scopes(values, budget=budget).expand(template)
        slots.append((part.name, "".join(map(str, part.default))))
        texts.append("%s")
    pattern = "".join(texts)

    def fill(values: Values, budget: Budget) -> str:
        given = [values.get(name) or default for name, default in slots]
        # Before the text is made: a long value may be in it a thousand times.
        budget.spend(len(pattern) + sum(map(len, given)))
        return pattern % tuple(given)

    return fill
