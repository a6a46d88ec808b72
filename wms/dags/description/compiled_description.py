"""A submit description made ready for many nodes: what is the same for all is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from matching.expressions import references
from matching.macro_functions import UNKNOWN
from matching.macros import (
    STEPS_OF_DESCRIPTION,
    Budget,
    Flattener,
    MacroError,
    Template,
    names_in,
    parse_template,
)
from matching.needs import CPU_SEGMENTS_S, BadNeeds, Needs
from matching.substitution import (
    EXPRESSION_OPENING,
    Evaluator,
    Own,
    expand_references,
    uses_macros,
)
from wms.core.errors import PilotageError
from wms.dags.description.amounts import NUMBERS, attribute_text, is_plain, number_text
from wms.dags.description.commands import DESTINATIONS, SYNONYMS, universe_fault
from wms.dags.description.commands import FIELDS as FIELD_COMMANDS
from wms.dags.description.job_ad import Get, OwnAd, is_special
from wms.dags.description.job_fields import FIELDS, JobField, url_fault
from wms.dags.description.needs import COMMANDS as NEED_COMMANDS
from wms.dags.description.needs import is_need, read_needs
from wms.dags.description.templates import Fill, Filler, Values, filler, slot_of

#: From a command's text to the one that RETRY changes it to.
Change: TypeAlias = Callable[[str], str]
_WITHOUT_ADS = Evaluator({}, {}, {})
#: What differs among the jobs of a node.
_PLACES = frozenset({"process", "procid"})
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
    """In whose name and for which DAG jobs are made, and the CPU time segments in force."""

    owner: str
    group: str = ""
    cpu_segments_s: Sequence[int] = CPU_SEGMENTS_S
    batch_name: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What references mean at the site of a DAG: `$ENV(...)` and `$$(...)`."""

    environment: Mapping[str, str] = field(default_factory=dict)
    match_attributes: Mapping[str, object] = field(default_factory=dict)
    evaluator: Callable[[str, Own], str] = _WITHOUT_ADS


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
        self._raw: dict[str, Filler] = {}
        self._own = OwnAd(
            owner=identity.owner,
            group=identity.group,
            batch_name=identity.batch_name,
            expressions=self._expressions(source),
        )
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
        self._destinations = [
            text for name, text in self._commands.items() if text.fill and name in DESTINATIONS
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
        for text in self._destinations:
            text.get(values, budget)
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
        given = {name: partial(flattener.value, name) for name in known}
        given |= {name: partial(slot_of, name) for name in source.outer}
        for written, flatten in given.items():
            name = SYNONYMS.get(written, written)
            if name == written or name not in given:
                commands[name] = self._text(name, flatten, source, budget)
        attributes = {
            name: self._text(
                f"+{name}", partial(flattener.flatten, text, f"+{name}"), source, budget
            )
            for name, text in source.attributes.items()
        }
        return commands, attributes

    def _text(
        self, name: str, flatten: Callable[[], Template], source: Source, budget: Budget
    ) -> _Text:
        finish = self._finisher(name, source.changes.get(name.lower()))

        def made(values: Values, budget: Budget) -> str | None:
            try:
                return finish(fill(values, budget), values, budget)
            except (ValueError, PilotageError) as error:
                raise _named(name, error) from error

        try:
            template = flatten()
        except MacroError as error:
            raise _named(name, error) from error
        self._raw[name] = fill = filler(template)
        names = frozenset(names_in(template))
        if any(isinstance(part, str) and is_special(part) for part in template):
            names |= _PLACES
        is_fixed = all(isinstance(part, str) for part in template)
        if is_fixed and not self._is_of_job(name, "".join(map(str, template))):
            return _Text(name, made({}, budget), None, names)
        return _Text(name, None, made, names)

    def _is_of_job(self, name: str, text: str) -> bool:
        """Whether a text without macros may mean something else for another job."""
        if self._surroundings is not None and EXPRESSION_OPENING in text:
            return _has_references(name)
        return name in NUMBERS and not is_plain(name, text) and bool(references(text))

    def _expressions(self, source: Source) -> dict[str, Get]:
        """The expressions of the job's own ad, by the names of its attributes."""

        def raw(name: str) -> Get:
            return lambda values: self._raw[name](values, Budget())

        def number(name: str) -> Get:
            default = "1" if name == "request_cpus" else "0"
            return lambda values: attribute_text(
                name, self._raw[name](values, Budget()) if name in self._raw else default
            )

        numbers = {attribute: number(name) for name, attribute in NUMBERS.items()}
        return {name: raw(f"+{name}") for name in source.attributes} | numbers

    def _finisher(
        self, name: str, change: Change | None
    ) -> Callable[[str, Values, Budget], str | None]:
        """Fills in references to the site, where there may be some, evaluates what is to be a
        number, and then changes the text.
        """
        has_references, is_number = _has_references(name), name in NUMBERS
        is_known = self._surroundings is not None

        def finish(text: str, values: Values, budget: Budget) -> str | None:
            if not is_known and _is_unknown(text):
                return None
            if name in DESTINATIONS and (fault := url_fault(text)):
                raise ValueError(fault)
            if is_known and has_references and "$" in text:
                text = self._refer(text, values)
                budget.spend(len(text))
            if is_number:
                number = number_text(name, text, lambda each: self._own.named_in(each, values))
                if number is None:
                    return None
                text = number
            return change(text) if change else text

        return finish

    def _refer(self, text: str, values: Values) -> str:
        around = self._surroundings or Surroundings()
        expanded = expand_references(
            text,
            environment=around.environment,
            target=around.match_attributes,
            evaluator=lambda each: around.evaluator(
                each, self._own.named_in(each, values) or Own()
            ),
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
        except CannotRender:
            raise
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


def _named(name: str, error: Exception) -> CannotRender:
    """The error with the name of the command or attribute."""
    return CannotRender(f"{name}: {error}", name)


def _has_references(name: str) -> bool:
    """Whether references to the site are filled in in a command or attribute."""
    return not name.startswith("+") or is_need(name[1:])


def _is_unknown(text: str) -> bool:
    return UNKNOWN in text or ("$" in text and uses_macros(text))


def _macros_of(source: Source) -> set[str]:
    """The commands that others use as macros: they are no attributes of the job."""
    used: set[str] = set()
    for text in (*source.commands.values(), *source.attributes.values()):
        if "$" in text:
            used |= names_in(parse_template(text))
    return used
