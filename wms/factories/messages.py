"""Messages between a factory and the installation it submits for: values, and their JSON.

A factory calls with a `Report` and is answered with `Orders`. Where the frontend is the one to
call, it asks for the report with a `Question` and brings the orders by a second call; both name
the turn. All are bounded, and read strictly: a fault raises InvalidInput with its field, and
nothing of the message counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from wms.core.errors import InvalidInput
from wms.factories.states import TOLD

VERSION = 1
#: Bytes of a question, a report, and orders.
MOST_QUESTION_BYTES = 16 * 1024
MOST_REPORT_BYTES = 2 * 1024 * 1024
MOST_ORDERS_BYTES = 4 * 1024 * 1024
#: Items of one message; what is more travels with the next.
MOST_ENTRIES = 500
MOST_PILOTS = 1000
MOST_NEW = 200
MOST_BATCHES = 20
MOST_SCRIPT_BYTES = 64 * 1024
MOST_REASON = 500
MOST_NODE = 255
#: Characters of the end of a log.
MOST_LOG = 8192
_MOST_NUMBER = 2**31 - 1

_ENTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}/[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_BATCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SEALED = re.compile(r"[A-Za-z0-9_=-]{1,2048}")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EntryAd:
    """Entry of a factory: whether it takes pilots, what slots they get, and those it has of ours.

    `failed` counts the pilots that went wrong lately, by the state in which they ended.
    """

    name: str
    is_open: bool
    reason: str = ""
    platform: str = ""
    cores: int = 0
    memory_mb: int = 0
    gpus: int = 0
    wall_time_s: int = 0
    max_pilots: int = 0
    waiting: int = 0
    queued: int = 0
    running: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PilotWord:
    """Report of the factory on one pilot; `state` is one of `TOLD`.

    `node` and `exit_code` are as its batch system tells them, as far as it does; `log` is the end
    of its log there, of a pilot that went wrong.
    """

    uuid: UUID
    state: str
    reason: str = ""
    node: str = ""
    exit_code: int | None = None
    log: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a factory: its entries, and the pilots whose states it has not told yet."""

    instance: UUID
    entries: Sequence[EntryAd] = ()
    pilots: Sequence[PilotWord] = ()


@dataclass(frozen=True, slots=True)
class NewPilot:
    """A pilot to be submitted: its uuid, and its sealed secret."""

    uuid: UUID
    sealed: str


@dataclass(frozen=True, slots=True)
class NewBatch:
    """Pilots of one script, for an entry."""

    name: str
    entry: str
    script: str
    cores: int
    memory_mb: int
    gpus: int
    minutes: int
    pilots: Sequence[NewPilot]


@dataclass(frozen=True, slots=True)
class Orders:
    """Answer to a report: what is to be submitted and taken back, and what is to be told again.

    All of it holds for `lease_s` from the call on. `refused` has the entries that are not used,
    with the reason.
    """

    lease_s: float
    refused: Mapping[str, str] = field(default_factory=dict)
    batches: Sequence[NewBatch] = ()
    cancelled: Sequence[UUID] = ()
    asked: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """Question of a frontend that calls: it asks the factory for its report."""

    instance: UUID


def as_json(message: Report | Orders | Question, *, turn: UUID | None = None) -> dict[str, Any]:
    """The message as JSON knows it; ids are texts. With `turn` where the frontend calls."""
    named = {} if turn is None else {"turn": str(turn)}
    return {"version": VERSION, **named, **_plain(asdict(message))}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, UUID) else value


def report_of(data: object) -> Report:
    """The report in a JSON document. Raises InvalidInput."""
    reader = _Reader(data)
    reader.version()
    return Report(
        reader.uuid("instance"),
        reader.items("entries", _ad, most=MOST_ENTRIES),
        reader.items("pilots", _word, most=MOST_PILOTS),
    )


def orders_of(data: object) -> Orders:
    """The orders in a JSON document. Raises InvalidInput."""
    reader = _Reader(data)
    reader.version()
    return Orders(
        float(reader.number("lease_s", low=1, high=86_400)),
        reader.texts("refused"),
        reader.items("batches", _batch, most=MOST_BATCHES),
        reader.uuids("cancelled"),
        reader.uuids("asked"),
    )


def question_of(data: object) -> Question:
    """The question in a JSON document. Raises InvalidInput."""
    reader = _Reader(data)
    reader.version()
    return Question(reader.uuid("instance"))


def turn_of(data: object) -> UUID:
    """The turn that a report or orders name, where the frontend calls. Raises InvalidInput."""
    return _Reader(data).uuid("turn")


def _ad(reader: _Reader) -> EntryAd:
    names = ("cores", "memory_mb", "gpus", "wall_time_s", "max_pilots", "waiting", "queued",
             "running")  # fmt: skip
    return EntryAd(
        reader.text("name", pattern=_ENTRY),
        reader.flag("is_open"),
        reader.text("reason", most=MOST_REASON),
        reader.text("platform", most=64),
        failed=reader.numbers("failed"),
        **{name: int(reader.number(name)) for name in names},
    )


def _word(reader: _Reader) -> PilotWord:
    return PilotWord(
        reader.uuid("uuid"),
        reader.choice("state", TOLD),
        reader.text("reason", most=MOST_REASON),
        # A factory of an earlier release tells none of these.
        reader.text("node", most=MOST_NODE) if reader.has("node") else "",
        reader.integer("exit_code") if reader.has("exit_code") else None,
        reader.text("log", most=MOST_LOG) if reader.has("log") else "",
    )


def _batch(reader: _Reader) -> NewBatch:
    return NewBatch(
        reader.text("name", pattern=_BATCH),
        reader.text("entry", pattern=_ENTRY),
        reader.text("script", most=MOST_SCRIPT_BYTES),
        int(reader.number("cores", low=1)),
        int(reader.number("memory_mb")),
        int(reader.number("gpus")),
        int(reader.number("minutes", low=1)),
        reader.items("pilots", _new_pilot, most=MOST_NEW),
    )


def _new_pilot(reader: _Reader) -> NewPilot:
    return NewPilot(reader.uuid("uuid"), reader.text("sealed", pattern=_SEALED))


class _Reader:
    """Reader of a JSON object: each field with its type; a fault names its place."""

    def __init__(self, data: object, place: str = "") -> None:
        if not isinstance(data, dict):
            raise InvalidInput.of("must be a JSON object", field=place)
        self._data, self._place = data, place

    def fault(self, name: str, reason: str) -> InvalidInput:
        """The error for a field."""
        return InvalidInput.of(reason, field=f"{self._place}.{name}" if self._place else name)

    def version(self) -> None:
        """Refuse a message of another version of the protocol."""
        if self._data.get("version") != VERSION:
            raise self.fault("version", f"must be {VERSION}: the other side is of another release")

    def has(self, name: str) -> bool:
        """Whether the field is there, and not null."""
        return self._data.get(name) is not None

    def text(self, name: str, *, most: int = 4096, pattern: re.Pattern[str] | None = None) -> str:
        """A text that a database stores, of so many characters at most."""
        value = self._data.get(name)
        if not isinstance(value, str) or len(value) > most or _NO_TEXT.search(value):
            raise self.fault(name, f"must be a text of {most} characters at most")
        if pattern is not None and not pattern.fullmatch(value):
            raise self.fault(name, f"must match {pattern.pattern}")
        return value

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of these words."""
        value = self._data.get(name)
        if not isinstance(value, str) or value not in choices:
            raise self.fault(name, f"must be one of {', '.join(choices)}")
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._data.get(name)
        if not isinstance(value, bool):
            raise self.fault(name, "must be true or false")
        return value

    def number(self, name: str, *, low: int = 0, high: int = _MOST_NUMBER) -> float:
        """A number from `low` to `high`."""
        value = self._data.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fault(name, f"must be a number from {low} to {high}")
        if not low <= value <= high:
            raise self.fault(name, f"must be a number from {low} to {high}")
        return value

    def integer(self, name: str) -> int:
        """A whole number that a database stores in four bytes."""
        value = self.number(name, low=-_MOST_NUMBER)
        if value != int(value):
            raise self.fault(name, "must be a whole number")
        return int(value)

    def uuid(self, name: str) -> UUID:
        """An id."""
        return self._uuid(name, self._data.get(name))

    def _uuid(self, name: str, value: object) -> UUID:
        try:
            return UUID(str(value))
        except ValueError as error:
            raise self.fault(name, "must be a UUID") from error

    def uuids(self, name: str) -> tuple[UUID, ...]:
        """A list of ids."""
        return tuple(self._uuid(name, each) for each in self._list(name, MOST_PILOTS))

    def texts(self, name: str) -> dict[str, str]:
        """An object of entries with a reason each."""
        inner = _Reader(self._data.get(name), name)
        if len(inner._data) > MOST_ENTRIES:
            raise self.fault(name, f"has more than {MOST_ENTRIES} items")
        return {key: inner.text(key, most=MOST_REASON) for key in inner._data}

    def numbers(self, name: str) -> dict[str, int]:
        """An object of counts by a word of `TOLD`."""
        inner = _Reader(self._data.get(name), name)
        if not set(inner._data) <= set(TOLD):
            raise self.fault(name, f"may have {', '.join(TOLD)}")
        return {key: int(inner.number(key)) for key in inner._data}

    def items(self, name: str, read: Callable[[_Reader], T], *, most: int) -> tuple[T, ...]:
        """A list of objects, so many at most."""
        values = self._list(name, most)
        return tuple(
            read(_Reader(value, f"{self._place}.{name}[{i}]" if self._place else f"{name}[{i}]"))
            for i, value in enumerate(values)
        )

    def _list(self, name: str, most: int) -> list[object]:
        value = self._data.get(name)
        if not isinstance(value, list) or len(value) > most:
            raise self.fault(name, f"must be a list of {most} items at most")
        return value
