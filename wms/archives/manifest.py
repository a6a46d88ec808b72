"""Manifest of an archive: read strictly, with the place of what is wrong in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from wms.archives import layout
from wms.archives.row_kinds import KINDS, fault_of
from wms.archives.zip_stream import Member
from wms.core.errors import Finding, InvalidInput
from wms.dags.states import DAG_TERMINAL, NodeState
from wms.jobs.states import TERMINAL

_FIELDS: Final[Mapping[str, type]] = {
    "format": str, "version": int, "installation": str, "product_version": str, "dag": dict,
    "rows": dict, "node_states": dict, "job_states": dict, "failures": list, "members": list,
}  # fmt: skip
#: The longest texts that have a column of their own here.
_MOST_CHARACTERS: Final = {"installation": 1000, "product_version": 64}
_MOST_OF_DAG: Final = {"name": 255, "owner": 150, "accounting_group": 64}


@dataclass(frozen=True, slots=True)
class Manifest:
    """Manifest, by which an archive tells of itself; `dag` is the row of the outermost DAG."""

    installation: str
    product_version: str
    dag: Mapping[str, Any]
    rows: Mapping[str, int]
    node_states: Mapping[str, int]
    job_states: Mapping[str, int]
    failures: Sequence[Mapping[str, Any]]
    members: Sequence[Member]

    @property
    def submitted_at(self) -> datetime:
        """When the DAG was submitted."""
        return datetime.fromisoformat(self.dag["created_at"])

    @property
    def ended_at(self) -> datetime:
        """When it ended."""
        return datetime.fromisoformat(self.dag["ended_at"])

    def chunks(self, kind: str) -> list[Member]:
        """Chunks of rows of a kind, in their order."""
        return [each for each in self.members if each.name.startswith(f"{kind}/")]


def fault(message: str, *, member: str = layout.MANIFEST, line: int | None = None) -> InvalidInput:
    """The refusal of an archive for what is wrong in a member of it."""
    return InvalidInput([Finding(message, field="archive", line=line, member=member)])


def strict_json(text: bytes) -> Any:
    """A JSON value that can be stored and shown. Raises ValueError with the reason."""
    try:
        value = json.loads(text.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise ValueError("is no text in UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no JSON: {str(error)[:200]}") from None
    if b"\\u" in text:
        told = json.dumps(value, ensure_ascii=False)
        if "\\u0000" in told or not _is_text(told):
            raise ValueError("has a character that is none")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_manifest(text: bytes) -> Manifest:
    """The manifest. Raises InvalidInput; an unknown version is told before anything else."""
    try:
        told = strict_json(text)
    except ValueError as error:
        raise fault(str(error)) from None
    if type(told) is not dict or told.get("format") != layout.FORMAT:
        raise fault(f"is no archive of a DAG: its format is not {layout.FORMAT}")
    version = told.get("version")
    if type(version) is not int or version != layout.VERSION:
        raise fault(
            f"has version {str(version)[:20]} of the format; this release reads version "
            f"{layout.VERSION}"
        )
    if problem := _problem(told):
        raise fault(problem)
    return Manifest(
        members=[_member(each) for each in told["members"]],
        **{name: told[name] for name in _FIELDS if name not in ("format", "version", "members")},
    )


def _problem(told: Mapping[str, Any]) -> str:
    if told.keys() != _FIELDS.keys():
        odd = sorted(told.keys() ^ _FIELDS.keys())[0]
        return f"{odd[:64]!r} is {'missing' if odd in _FIELDS else 'no field of it'}"
    for name, kind in _FIELDS.items():
        if type(told[name]) is not kind:
            return f"{name} is no {kind.__name__}"
    return (
        _problem_of_dag(told["dag"])
        or _problem_of_lengths(told)
        or _problem_of_counts("rows", told["rows"], KINDS)
        or _problem_of_counts("node_states", told["node_states"], NodeState.values)
        or _problem_of_counts("job_states", told["job_states"], TERMINAL)
        or _problem_of_failures(told["failures"])
    )


def _problem_of_dag(dag: Any) -> str:
    if problem := fault_of("dags", dag):
        return f"dag: {problem}"
    if dag["state"] not in DAG_TERMINAL or dag["ended_at"] is None:
        return "dag: it has not ended"
    return "dag: it is inside of another one" if dag["root"] is not None else ""


def _problem_of_lengths(told: Mapping[str, Any]) -> str:
    texts = [(name, told[name], most) for name, most in _MOST_CHARACTERS.items()]
    texts += [(name, told["dag"][name] or "", most) for name, most in _MOST_OF_DAG.items()]
    too_long = (name for name, text, most in texts if len(text) > most)
    return next((f"{name} is too long" for name in too_long), "")


def _problem_of_counts(name: str, counts: Any, known: Any) -> str:
    for key, count in counts.items():
        if key not in known:
            return f"{name}: {key[:64]!r} is unknown"
        if type(count) is not int or not 0 < count < 2**63:
            return f"{name}: the count of {key} is no number of any"
    return ""


def _problem_of_failures(failures: Any) -> str:
    if len(failures) > layout.FAILURES_TOLD:
        return f"failures: more than {layout.FAILURES_TOLD}"
    problems = (fault_of("events", each) for each in failures)
    return next((f"failures: {problem}" for problem in problems if problem), "")


def _member(told: Any) -> Member:
    is_known = (
        type(told) is dict
        and told.keys() - {"rows"} == {"name", "sha256", "size_bytes"}
        and all(type(told[name]) is str for name in ("name", "sha256"))
        and all(type(told.get(name, 0)) is int for name in ("size_bytes", "rows"))
    )
    if not is_known:
        raise fault("members: one has not name, sha256 and size_bytes")
    name = told["name"]
    if name == layout.MANIFEST or layout.most_bytes_of(name) is None:
        raise fault(f"members: {name[:100]!r} is no name of one")
    is_chunk = layout.CHUNK_NAME.fullmatch(name) is not None
    if is_chunk != ("rows" in told):
        raise fault(f"members: {name} has {'no' if is_chunk else 'a'} number of rows")
    return Member(name, told["sha256"], told["size_bytes"], told.get("rows"))
