"""Compiled submit description: what is the same for all its jobs is computed once.

The macros of each command are parsed, and constant values evaluated; the rest is filled in for
each job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from matching.ads.expressions import references
from matching.descriptions.macros import (
    STEPS_OF_DESCRIPTION,
    Budget,
    Flattener,
    MacroError,
    Template,
    names_in,
)
from matching.descriptions.substitution import (
    EXPRESSION_OPENING,
    OwnAttributes,
    expand_references,
    refers_to_site,
)
from matching.task_queues.needs import BadNeeds, Needs
from wms.core.errors import PilotageError
from wms.jobs.description.amounts import NUMBERS, attribute_text, is_plain, number_text
from wms.jobs.description.command_texts import (
    CommandText,
    error_of,
    has_references,
    is_unknown,
    macros_of,
)
from wms.jobs.description.commands import FIELDS as FIELD_COMMANDS
from wms.jobs.description.commands import SYNONYMS, universe_fault
from wms.jobs.description.job_ad import AttributeText, JobAds, depends_on_job_or_parents
from wms.jobs.description.job_fields import FIELDS, JobField
from wms.jobs.description.late_texts import EMPTY, checked_late, joined, late_part
from wms.jobs.description.needs import READ as NEED_COMMANDS
from wms.jobs.description.needs import is_need, read_needs
from wms.jobs.description.renderer_inputs import (
    CannotRender,
    Change,
    CommandSet,
    Identity,
    SiteValues,
)
from wms.jobs.description.templates import Filler, Values, filler, is_verbatim, slot_of
from wms.jobs.models.descriptions import DEFAULTS

#: Names whose values differ among the jobs of a node.
_JOB_INDEX_NAMES = frozenset({"process", "procid"})


class CompiledDescription:
    """Compiled commands of one queue statement, from which the fields of jobs are made.

    Without site values only the commands that do not depend on the site are evaluated. Where it
    `is_late`, references to the site stay as they are, and are faults where they cannot. `faults`
    are those that all jobs have; `fields` raises them with those of the job.
    """

    def __init__(
        self,
        source: CommandSet,
        identity: Identity,
        site_values: SiteValues | None,
        *,
        is_late: bool = False,
    ) -> None:
        self._identity = identity
        self._is_late = is_late
        self._site_values = site_values
        self.faults: list[CannotRender] = []
        self._match_values: dict[str, str] = {}
        self._raw: dict[str, Filler] = {}
        self._job_ad = JobAds(
            owner=identity.owner,
            group=identity.group,
            batch_name=identity.batch_name,
            expressions=self._expressions(source),
        )
        budget = Budget(STEPS_OF_DESCRIPTION)
        self._commands, attributes = self._texts(source, budget)
        self._needed = [self._commands[name] for name in NEED_COMMANDS if name in self._commands]
        self._needed_attributes = {n: text for n, text in attributes.items() if is_need(n)}
        read_elsewhere = FIELD_COMMANDS | macros_of(source)
        kept = {name: text for name, text in self._commands.items() if name not in read_elsewhere}
        kept |= attributes
        self._varying_attributes = [(n, text) for n, text in kept.items() if text.fill]
        self._varying = [
            (field_, [self._commands[name] for name in field_.commands if name in self._commands])
            for field_ in FIELDS
            if any(self._commands[name].fill for name in field_.commands if name in self._commands)
        ]
        self._check_universe()
        self._fixed = self._fixed_fields(budget)
        self._fixed_attributes: dict[str, Any] = {
            name: text.fixed for name, text in kept.items() if text.fixed is not None
        }
        self._fixed_attributes |= self._match_values
        self._match_values = {}
        has_varying_needs = any(t.fill for t in (*self._needed, *self._needed_attributes.values()))
        self._needs = None if has_varying_needs else self._fixed_needs(budget)
        varying_commands = {text.name for _, texts in self._varying for text in texts if text.fill}
        #: Whether jobs differ in their arguments alone, in which values stand as they are.
        self.only_arguments_vary = (
            self._needs is not None
            and varying_commands <= {"arguments"}
            and all(self._commands[name].is_verbatim for name in varying_commands)
        )
        every = (*self._commands.values(), *attributes.values())
        #: The names of all values that nodes may give it.
        self.names = frozenset().union(*(text.names for text in every))
        self.attribute_names = {name.lower(): name for name in attributes}

    def fields(
        self, values: Values, attributes: Mapping[str, str], budget: Budget
    ) -> dict[str, Any]:
        """Fields of the job, without its attributes and its directory.

        `attributes` come with the node, macros expanded, and override the description. Expanded
        characters are counted in the budget. Raises CannotRender with every fault.
        """
        if self._match_values:
            self._match_values = {}
        if self.faults:
            raise self._with_other_faults(CannotRender.together(self.faults), values, attributes)
        fields = self._fixed.copy()
        try:
            for field_, texts in self._varying:
                self._read_field(field_, texts, values, fields, budget)
            if self._needs is not None and not any(map(is_need, attributes)):
                fields["needs"] = self._needs
            else:
                fields["needs"] = self._read_needs(values, attributes, budget)
        except CannotRender as error:
            raise self._with_other_faults(error, values, attributes) from error
        return fields

    def _with_other_faults(
        self, first: CannotRender, values: Values, attributes: Mapping[str, str]
    ) -> CannotRender:
        """The fault with all others of a job, and with what can be read of it."""
        faults, fields = [first], self._fixed.copy()

        def read(reader: Callable[[], Any]) -> None:
            try:
                reader()
            except CannotRender as error:
                # Several commands may use the macro that is at fault.
                if not isinstance(error.__cause__, MacroError):
                    faults.append(error)

        for field_, texts in self._varying:
            read(partial(self._read_field, field_, texts, values, fields, Budget()))
        if self._needs is None or any(map(is_need, attributes)):
            read(partial(self._read_needs, values, attributes, Budget()))
        return CannotRender.together(faults, fields)

    def attributes(
        self, values: Values, attributes: Mapping[str, str], budget: Budget
    ) -> Mapping[str, Any]:
        """Attributes of the job whose fields were made last: commands that are no fields, and site
        values that the job used. Of jobs that have the same they are one object.
        """
        if not (self._varying_attributes or attributes or self._match_values):
            return self._fixed_attributes
        made = self._fixed_attributes.copy()
        for name, text in self._varying_attributes:
            made[name] = text.get(values, budget)
        for name, value in attributes.items():
            made.pop(self.attribute_names.get(name.lower(), ""), None)
            made[name] = value
        made.update(self._match_values)
        return made

    def shared(self, attributes: Mapping[str, str]) -> dict[str, Any]:
        """The values that all jobs have in common to which nodes give attributes of these names.

        They are the fields that no value of a node or place in its list changes, the needs if
        these are the same, and the attributes that are the same.
        """
        common = {name: value for name, value in self._fixed.items() if name in DEFAULTS}
        if self._needs is not None and not any(map(is_need, attributes)):
            common["needs"] = self._needs
        common["attributes"] = self._fixed_attributes
        if given := {self.attribute_names.get(name.lower(), name) for name in attributes}:
            common["attributes"] = {
                name: value for name, value in self._fixed_attributes.items() if name not in given
            }
        return common

    def _texts(
        self, source: CommandSet, budget: Budget
    ) -> tuple[dict[str, CommandText], dict[str, CommandText]]:
        known = {n: text for n, text in source.commands.items() if n not in source.outer}
        flattener = Flattener(known, budget)
        commands: dict[str, CommandText] = {}
        attributes: dict[str, CommandText] = {}
        given = {name: partial(flattener.value, name) for name in known}
        given |= {name: partial(slot_of, name) for name in source.outer}
        for written, flatten in given.items():
            name = SYNONYMS.get(written, written)
            if name == written or name not in given:
                commands[name] = self._text(name, flatten, source, budget)
        for name, text in source.attributes.items():
            flatten = partial(flattener.flatten, text, f"+{name}")
            attributes[name] = self._text(f"+{name}", flatten, source, budget)
        return commands, attributes

    def _text(
        self, name: str, flatten: Callable[[], Template], source: CommandSet, budget: Budget
    ) -> CommandText:
        """Text of a command or attribute; that of a faulty one is not known."""
        try:
            if name.lower() not in source.faulty:
                return self._faultless_text(name, flatten, source, budget)
        except CannotRender as error:
            has_told = bool(source.faulty or self.faults)
            # Several commands may use the macro that is at fault.
            if not (has_told and isinstance(error.__cause__, MacroError)):
                self.faults.append(error)
        self._raw.setdefault(name, lambda _values, _budget: "")
        return CommandText(name, None, None, frozenset())

    def _faultless_text(
        self, name: str, flatten: Callable[[], Template], source: CommandSet, budget: Budget
    ) -> CommandText:
        finish = self._text_finisher(name, source.changes.get(name.lower()))

        def text_of_node(values: Values, budget: Budget) -> str | None:
            try:
                return finish(fill(values, budget), values, budget)
            except (ValueError, PilotageError) as error:
                raise error_of(name, error) from error

        try:
            template = flatten()
        except MacroError as error:
            raise error_of(name, error) from error
        self._raw[name] = fill = filler(template)
        names = frozenset(names_in(template))
        if any(isinstance(part, str) and depends_on_job_or_parents(part) for part in template):
            names |= _JOB_INDEX_NAMES
        is_fixed = all(isinstance(part, str) for part in template)
        if is_fixed and not self._depends_on_job(name, "".join(map(str, template))):
            return CommandText(name, text_of_node({}, budget), None, names)
        return CommandText(name, None, text_of_node, names, is_verbatim(template))

    def _depends_on_job(self, name: str, text: str) -> bool:
        """Whether a text without macros may mean something else for another job."""
        if self._site_values is not None and EXPRESSION_OPENING in text:
            return has_references(name)
        return name in NUMBERS and not is_plain(name, text) and bool(references(text))

    def _expressions(self, source: CommandSet) -> dict[str, AttributeText]:
        """Expressions of the job's own ad, by the names of its attributes."""

        def raw(name: str) -> AttributeText:
            return lambda values: self._raw[name](values, Budget())

        def number(name: str) -> AttributeText:
            default = "1" if name == "request_cpus" else "0"
            return lambda values: attribute_text(
                name, self._raw[name](values, Budget()) if name in self._raw else default
            )

        numbers = {attribute: number(name) for name, attribute in NUMBERS.items()}
        return {name: raw(f"+{name}") for name in source.attributes} | numbers

    def _text_finisher(
        self, name: str, change: Change | None
    ) -> Callable[[str, Values, Budget], str | None]:
        """Function that expands references to the site, evaluates numbers, and applies the change
        of a retry.
        """
        takes_references, is_number = has_references(name), name in NUMBERS
        is_known = self._site_values is not None

        def finish(text: str, values: Values, budget: Budget) -> str | None:
            if self._is_late and takes_references and refers_to_site(text):
                text = checked_late(name, text)
                return change(text) if change else text
            if not is_known and is_unknown(text):
                return None
            if is_known and takes_references and "$" in text:
                text = self._with_references(text, values)
                budget.spend(len(text))
            if is_number:
                number = number_text(
                    name, text, lambda text: self._job_ad.attributes_used_by(text, values)
                )
                if number is None:
                    return None
                text = number
            return change(text) if change else text

        return finish

    def _with_references(self, text: str, values: Values) -> str:
        site_values = self._site_values or SiteValues()
        expanded = expand_references(
            text,
            environment=site_values.environment,
            target=site_values.match_attributes,
            evaluator=lambda text: site_values.evaluator(
                text, self._job_ad.attributes_used_by(text, values) or OwnAttributes()
            ),
        )
        self._match_values.update(expanded.used)
        return expanded.text

    def _check_universe(self) -> None:
        text = self._commands.get("universe")
        fault = universe_fault(text.fixed or "") if text is not None else ""
        if fault:
            self.faults.append(CannotRender(fault, "universe"))

    def _fixed_fields(self, budget: Budget) -> dict[str, Any]:
        """Fields that all jobs have in common; notes faults."""
        varying = {field_.name for field_, _ in self._varying}
        fixed: dict[str, Any] = {}
        for field_ in FIELDS:
            if field_.name not in varying:
                texts = [self._commands[name] for name in field_.commands if name in self._commands]
                try:
                    self._read_field(field_, texts, {}, fixed, budget)
                except CannotRender as error:
                    self.faults.append(error)
        return fixed

    def _fixed_needs(self, budget: Budget) -> Needs | None:
        """Needs that all jobs have in common; notes faults."""
        try:
            return self._read_needs({}, {}, budget)
        except CannotRender as error:
            self.faults.append(error)
            return None

    def _read_field(
        self,
        field_: JobField,
        texts: Sequence[CommandText],
        values: Values,
        into: dict[str, Any],
        budget: Budget,
    ) -> None:
        """Read a field into `into`; a field that depends on unknown values is left out."""
        given: dict[str, str] = {}
        try:
            for text in texts:
                value = text.fixed if text.fill is None else text.fill(values, budget)
                if value is None:
                    return
                given[text.name] = value
            late = self._is_late and late_part(
                field_, given, lambda text: self._job_ad.attributes_used_by(text, values)
            )
            into[field_.name] = EMPTY[field_.name] if late else field_.read(given)
            if late:
                into["late"] = joined(into.get("late"), late)
        except CannotRender:
            raise
        except (ValueError, OverflowError, PilotageError) as error:
            raise CannotRender(str(error), *field_.commands) from error

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
                    if text is not None and (self._site_values or not is_unknown(text))
                },
                owner=self._identity.owner,
                group=self._identity.group,
                segments_s=self._identity.cpu_segments_s,
            )
        except BadNeeds as error:
            others = [CannotRender(str(each), *each.fields) for each in error.others]
            raise CannotRender(str(error), *error.fields, others=others) from error
        except (ValueError, OverflowError, PilotageError) as error:
            raise CannotRender(str(error)) from error
