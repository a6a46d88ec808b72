"""Publication of a check: typed attributes of the node, and variables for payloads.

A check may publish what its definition declares and nothing else. The pilot and the portal judge
what it said by the same rules: what breaks one is skipped, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Limits of what one check may declare: attributes, and variables.
MOST_NAMES = 20
#: Characters of a text, bytes of a variable's value, and bytes of all that one check publishes.
TEXT_LENGTH = 500
VARIABLE_BYTES = 1024
MOST_BYTES = 8 * 1024
#: Reasons that are told of one result, and characters of each name in them.
_MOST_REASONS = 5
_SHOWN_LENGTH = 64

#: A name of an attribute, and of a check that publishes any: no `_`, which stands between them.
PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
#: Variables that decide how programs are found, loaded and started, that the pilot sets, or that a
#: shell keeps read-only: where /bin/sh is bash, to export one of these ends the script.
_RESERVED = frozenset(
    {
        "PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SHELL", "PWD", "IFS", "ENV", "BASH_ENV",
        "CDPATH", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "GCONV_PATH", "NLSPATH",
        "HOSTALIASES", "LOCALDOMAIN", "RES_OPTIONS", "OMP_NUM_THREADS", "PYTHONSTARTUP",
        "PYTHONHOME", "PERL5OPT", "PERL5DB", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "RUBYOPT",
        "LANG", "LC_ALL", "TZ", "UID", "EUID", "PPID", "BASH_VERSINFO",
    }
)  # fmt: skip
_RESERVED_BEGINNINGS = (
    "LD_", "DYLD_", "GLIBC_", "MALLOC_", "BASH_FUNC_", "PILOTAGE_", "_PILOTAGE", "APPTAINER",
    "SINGULARITY", "SUDO_",
)  # fmt: skip


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and abs(value) < 1e15


def _is_short_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= TEXT_LENGTH and value.isprintable()


#: Types of attributes: the description of a value, and its test.
TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": (
        "a whole number below 1e15", lambda value: _is_number(value) and isinstance(value, int)
    ),
    "real": ("a number below 1e15", _is_number),
    "string": (f"a text of at most {TEXT_LENGTH} printable characters", _is_short_text),
}  # fmt: skip


@dataclass(frozen=True)
class Declaration:
    """Declaration of what a check may publish: types of attributes, names of variables."""

    attributes: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.attributes or self.variables)

    @classmethod
    def from_json(cls, data: Any) -> Declaration:
        """Read what a manifest has of it; nothing may be published where it has nothing."""
        data = data or {}
        return cls(
            attributes={str(name): str(kind) for name, kind in data.get("attributes", {}).items()},
            variables=tuple(str(name) for name in data.get("variables", ())),
        )

    def to_json(self) -> dict[str, Any]:
        """Declaration as a manifest has it."""
        return {"attributes": dict(self.attributes), "variables": list(self.variables)}


@dataclass(frozen=True)
class Publication:
    """Published values of one check; `skipped` has the reason for each that was left out."""

    attributes: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()


#: Of a check that declares, or has published, nothing.
NOTHING_DECLARED = Declaration()
NOTHING_PUBLISHED = Publication()


def variable_fault(name: str) -> str:
    """Reason why no check may set this variable for payloads; empty when one may."""
    if not _VARIABLE.fullmatch(name):
        return "is no name of a variable: letters, digits and _ , at most 64"
    if name.upper() in _RESERVED or name.upper().startswith(_RESERVED_BEGINNINGS):
        return "is a reserved variable"
    return ""


def read_publication(attributes: Any, variables: Any, declared: Declaration) -> Publication:
    """Publication from what a check said: what breaks no rule, and reasons for the rest."""
    if not attributes and not variables:
        return NOTHING_PUBLISHED
    try:
        size = len(json.dumps([attributes, variables]))
    except RecursionError:
        return Publication(skipped=("all that it published: it is too deep",))
    if size > MOST_BYTES:
        reason = f"all that it published: {size} bytes, allowed are {MOST_BYTES}"
        return Publication(skipped=(reason,))
    reasons: list[str] = []
    return Publication(
        attributes=_kept("attributes", attributes, reasons, _attribute_fault_by(declared)),
        variables=_kept("variables", variables, reasons, _variable_fault_by(declared)),
        skipped=tuple(_first(reasons)),
    )


def _kept(
    what: str, said: Any, reasons: list[str], fault_of: Callable[[str, Any], str]
) -> dict[str, Any]:
    if said is None:
        return {}
    if not isinstance(said, dict):
        reasons.append(f"{what}: must be a JSON object")
        return {}
    kept = {}
    for name, value in said.items():
        fault = fault_of(name, value)
        if fault:
            reasons.append(f"{_shown(name)} {fault}")
        else:
            kept[name] = value
    return kept


def _attribute_fault_by(declared: Declaration) -> Callable[[str, Any], str]:
    def fault(name: str, value: Any) -> str:
        kind = declared.attributes.get(name, "")
        if kind not in TYPES:
            return "is not an attribute that the check declares"
        description, holds = TYPES[kind]
        return "" if holds(value) else f"must be {description}"

    return fault


def _variable_fault_by(declared: Declaration) -> Callable[[str, Any], str]:
    def fault(name: str, value: Any) -> str:
        reserved = variable_fault(name)
        if reserved:
            return reserved
        if name not in declared.variables:
            return "is not a variable that the check declares"
        if not isinstance(value, str) or not value.isprintable():
            return "must be a text without control characters"
        too_long = len(value.encode("utf-8", "replace")) > VARIABLE_BYTES
        return f"has more than {VARIABLE_BYTES} bytes" if too_long else ""

    return fault


def _shown(name: str) -> str:
    text = name if name.isprintable() else ascii(name)[1:-1]
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}..."


def _first(reasons: Iterable[str]) -> list[str]:
    told = list(reasons)
    more = len(told) - _MOST_REASONS
    return [*told[:_MOST_REASONS], *([f"{more} more"] if more > 0 else [])]
