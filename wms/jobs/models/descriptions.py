"""Model of descriptions that jobs share, each stored once, and merging with a job's own values.

Also the defaults of values that a description is silent about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, overload

from django.db import models

from matching.task_queues.needs import Needs

T = TypeVar("T")

#: Values of a description that is silent about them. Lists and maps are never changed.
DEFAULTS: Mapping[str, Any] = {
    "executable": "",
    "arguments": [],
    "environment": {},
    "input_files": [],
    "output_files": [],
    "stdout_name": "",
    "stderr_name": "",
    "needs": {},
    "attributes": {},
    "wall_limit_s": 86_400,
    "max_retries": 0,
    "periodic": None,
    "directives": None,
    "directory": "",
    "avoided_hosts": [],
    "late": None,
}
#: Maps of which a job has only the entries that differ; null stands for one that it has not.
MAPS = frozenset({"environment", "attributes", "needs"})
#: Names the attributes that have a value of the job's row, such as its name.
OF_ROW = "of_row"
#: Needs that a description is silent about.
_DEFAULT_NEEDS: Mapping[str, Any] = Needs("").as_dict()


class JobDescription(models.Model):
    """What jobs have in common, once: equal descriptions have one row.

    Never changed. Two rows may be equal when two submissions wrote them at the same moment: then
    one has a key that nobody looks for.
    """

    key = models.BinaryField(max_length=32, unique=True, help_text="SHA-256 of the content.")
    content = models.JSONField(help_text="Values by name; those that are missing are the defaults.")

    def __str__(self) -> str:
        return f"description {self.pk}"


def merged(content: Mapping[str, Any], own: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values of a job: its own before those of its description, and these before defaults."""
    given = own or {}
    values = {**DEFAULTS, **content, **given}
    for name in MAPS:
        values[name] = _with_entries(content.get(name) or {}, given.get(name))
    needs = values["needs"]
    # As `Needs.from_dict` has it.
    values["needs"] = {**_DEFAULT_NEEDS, "max_cores": needs.get("cores", 1), **needs}
    return values


def base_of(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The entries of a map that a job with this description has without any of its own."""
    given: Mapping[str, Any] = content.get(name) or {}
    if name != "needs":
        return given
    return {**_DEFAULT_NEEDS, "max_cores": given.get("cores", 1), **given}


def _with_entries(base: Mapping[str, Any], own: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A map with a job's own entries."""
    if not own:
        return base
    return {name: value for name, value in {**base, **own}.items() if value is not None}


def own_entries(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of `values` that differ from those of `base`; null for those it has not."""
    own = {
        name: value
        for name, value in values.items()
        if name not in base or not is_same(base[name], value)
    }
    return own | {name: None for name in base if name not in values}


def is_same(value: Any, other: Any) -> bool:
    """Whether two values are the same in JSON, where 1 is not true."""
    return value is other or (type(value) is type(other) and bool(value == other))


class Described(Generic[T]):
    """Attribute of a job that is kept in its description, or among its own values."""

    def __init__(self, kind: Callable[..., T]) -> None:
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, job: None, owner: type) -> Described[T]: ...
    @overload
    def __get__(self, job: Any, owner: type) -> T: ...
    def __get__(self, job: Any, owner: type) -> Any:
        return self if job is None else job.described[self._name]
