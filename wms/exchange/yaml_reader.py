"""Reader of YAML documents of sites, queues and limits: their rows, with fields and line numbers.

Faults are told with line and column. Size, depth and number of rows are limited; anchors, aliases
and tags are refused. Nothing is looked up in the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import yaml
from django.db import models

from wms.core.errors import Finding, InvalidInput
from wms.exchange.fields import FORMAT, SITE, VERSION, RowKind, kind_below, names_account
from wms.exchange.scalars import Ambiguous, read_word

MAX_BYTES = 1024 * 1024
#: Settings of elements are a few levels deep; documents that nest further are no sites.
MAX_DEPTH = 20
MAX_NODES = 100_000
#: An import holds the locks of its sites while it looks at each row, and a request waits for it.
MAX_ROWS = 2_000
#: Faults that are told at once.
_MOST_FAULTS = 50
# libyaml where it is there: the same, and many times faster.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One row of the document: the fields that it names, and their lines.

    `site` is the name of the site to which it belongs; of a site it is its own.
    """

    kind: RowKind
    site: str
    values: dict[str, Any]
    lines: dict[str, int]
    line: int

    @property
    def key(self) -> tuple[Any, ...]:
        """Key of the row among others of its kind."""
        return (self.site, *(self.values.get(name) or None for name in self.kind.keys))

    @property
    def title(self) -> str:
        """Title of the row for people."""
        if self.kind is SITE:
            return self.site
        keys = [str(self.values.get(name) or "any") for name in self.kind.keys]
        return f"{self.site}/{', '.join(keys)}" if keys else self.site


def read_document(text: str) -> list[DocumentRow]:
    """Rows of a document: each site followed by those listed below it.

    Raises InvalidInput with the places of what cannot be read; nothing is looked up.
    """
    return _Document(_root(text)).entries()


def _fault(message: str, mark: Any) -> Finding:
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    return Finding(message, file="YAML", line=line, column=column)


def _refused(message: str, mark: Any = None) -> InvalidInput:
    return InvalidInput([_fault(message, mark)])


def _root(text: str) -> yaml.Node:
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise _refused(f"the document is larger than {MAX_BYTES} bytes")
    try:
        _bound(text)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _refused(f"{error.problem or 'is no YAML'}", error.problem_mark) from error
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        raise _refused(f"is no YAML: {' '.join(str(error).split())[:200]}") from error
    if root is None:
        raise _refused("the document is empty")
    return root


def _bound(text: str) -> None:
    """Refuse a text that is too deep or too large, or uses YAML beyond plain values."""
    depth = nodes = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _refused("anchors and aliases are not read: write it out", event.start_mark)
        if getattr(event, "tag", None):
            raise _refused("tags are not read", event.start_mark)
        documents += isinstance(event, yaml.DocumentStartEvent)
        nodes += isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent))
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if documents > 1:
            raise _refused("there is a second document", event.start_mark)
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise _refused("is nested too deeply, or says too much", event.start_mark)


class _Document:
    """Walks over the nodes and gathers faults."""

    def __init__(self, root: yaml.Node) -> None:
        self._root = root
        self._faults: list[Finding] = []

    def entries(self) -> list[DocumentRow]:
        found = list(islice(self._read(), MAX_ROWS + 1))
        if len(found) > MAX_ROWS:
            raise _refused(f"has more than {MAX_ROWS} sites, queues and limits: send it in parts")
        if self._faults:
            raise InvalidInput(self._faults[:_MOST_FAULTS])
        return found

    def _fault_at(self, message: str, node: yaml.Node) -> None:
        self._faults.append(_fault(message, node.start_mark))

    def _read(self) -> Iterator[DocumentRow]:
        top = self._mapping(self._root)
        for name, expected in (("format", FORMAT), ("version", VERSION)):
            node = top.pop(name, None)
            if node is None or self._plain(node) != expected:
                self._fault_at(f"needs `{name}: {expected}`", node or self._root)
        sites = top.pop("sites", None)
        for name, node in top.items():
            self._fault_at(f"{name} means nothing here", node)
        if sites is None:
            self._fault_at("needs a list of sites", self._root)
        else:
            seen: set[str] = set()
            for node in self._sequence(sites):
                yield from self._site(node, seen)

    def _site(self, node: yaml.Node, seen: set[str]) -> Iterator[DocumentRow]:
        values = self._mapping(node)
        below = [(key, values.pop(key)) for key in list(values) if kind_below(key)]
        site = self._entry(SITE, "", node, values)
        if site is None:
            return
        if site.site in seen:
            self._fault_at(f"the site {site.site} is listed twice", node)
        seen.add(site.site)
        yield site
        for key, listed in below:
            kind = kind_below(key)
            assert kind is not None
            yield from self._rows(kind, site.site, listed)

    def _rows(self, kind: RowKind, site: str, listed: yaml.Node) -> Iterator[DocumentRow]:
        known: set[tuple[Any, ...]] = set()
        for node in self._sequence(listed):
            entry = self._entry(kind, site, node, self._mapping(node))
            if entry is None:
                continue
            if entry.key in known:
                self._fault_at(f"the {kind.word} {entry.title} is listed twice", node)
            known.add(entry.key)
            yield entry

    def _entry(
        self, kind: RowKind, site: str, node: yaml.Node, nodes: dict[str, yaml.Node]
    ) -> DocumentRow | None:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for name, each in nodes.items():
            if name not in kind.names:
                self._fault_at(f"a {kind.word} has no {name}", each)
                continue
            value = self._plain(each)
            fault = _type_fault(kind, name, value)
            if fault:
                self._fault_at(f"{name} {fault}", each)
                continue
            values[name], lines[name] = value, each.start_mark.line + 1
        needed = "name" if "name" in kind.keys else ""
        if needed and not values.get(needed):
            if needed not in nodes:
                self._fault_at(f"a {kind.word} needs a name", node)
            return None
        title = str(values["name"]) if kind is SITE else site
        return DocumentRow(kind, title, values, lines, node.start_mark.line + 1)

    def _mapping(self, node: yaml.Node) -> dict[str, yaml.Node]:
        """The values of a mapping by their names; a name that stands twice is a fault."""
        if not isinstance(node, yaml.MappingNode):
            self._fault_at("must be a mapping of names to values", node)
            return {}
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if not name or name in found:
                self._fault_at(f"{name} stands twice" if name else "is no name of a value", key)
            found[name] = value
        return found

    def _sequence(self, node: yaml.Node) -> list[yaml.Node]:
        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        self._fault_at("must be a list", node)
        return []

    def _plain(self, node: yaml.Node) -> Any:
        """The value of a node as JSON knows it; a fault is noted for anything else."""
        if isinstance(node, yaml.MappingNode):
            return {name: self._plain(each) for name, each in self._mapping(node).items()}
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(each) for each in node.value]
        assert isinstance(node, yaml.ScalarNode)
        try:
            value = node.value if node.style else read_word(node.value, node.tag)
        except Ambiguous as error:
            self._fault_at(str(error), node)
            return None
        fault = _text_fault(value) if isinstance(value, str) else ""
        if fault:
            self._fault_at(fault, node)
            return None
        return value


def _text_fault(text: str) -> str:
    if "\0" in text:
        return "contains a zero byte"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains half a character"
    return ""


def _type_fault(kind: RowKind, name: str, value: Any) -> str:
    """Fault of a value's type for a field, or empty; the rest is checked when it is stored."""
    field = kind.model._meta.get_field(name)
    if isinstance(field, models.JSONField):
        return ""
    if value is None:
        is_optional = field.null or names_account(kind, name)
        return "" if is_optional else "needs a value"
    if names_account(kind, name) or isinstance(field, (models.CharField, models.TextField)):
        return "" if isinstance(value, str) else "must be a text: put it in quotes"
    if isinstance(field, models.BooleanField):
        return "" if isinstance(value, bool) else "must be true or false"
    if isinstance(field, models.FloatField):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return "" if is_number else "must be a number"
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return "" if is_whole else "must be a whole number"
