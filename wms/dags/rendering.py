"""From a node and its submit description to a job: every macro filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from matching import environments
from matching.needs import CPU_SEGMENTS_S, Needs
from matching.substitution import Evaluator, expand_macros, expand_references
from wms.core.errors import PilotageError
from wms.dags.submitfile import SubmitFile
from wms.jobs.paths import checked_path
from wms.jobs.services import JobSpec

_MEMORY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([KMGT]?)B?\Z", re.IGNORECASE)
_MB_PER_UNIT = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
#: Commands that become fields of the job; all others are kept as attributes.
_TAKEN = frozenset(
    {
        "executable", "arguments", "environment", "transfer_input_files", "transfer_output_files",
        "output", "error", "request_cpus", "request_memory", "allowed_execute_duration",
    }
)  # fmt: skip
_WALL_LIMIT_S = 86_400
_MAX_MEMORY_MB = 1024**3
#: What a job may carry to its pilot besides files.
_MAX_TEXT_LENGTH = 128 * 1024
_MAX_PATH_LENGTH = 1024
_WITHOUT_ADS = Evaluator({}, {}, {})


class CannotRender(PilotageError):
    """A job cannot be made of this node; the message says which value is wrong."""


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What the macros of a node's submit description may refer to."""

    node_name: str
    dag_id: int
    retry_number: int
    variables: Mapping[str, str]
    environment: Mapping[str, str]
    match_attributes: Mapping[str, object]
    evaluator: Callable[[str], str] = _WITHOUT_ADS

    def macros(self) -> dict[str, str]:
        """`$(name)` values: the node's VARS, and the names that DAGMan always provides."""
        return {
            **{name: value for name, value in self.variables.items() if not name.startswith("+")},
            "JOB": self.node_name,
            "NODE": self.node_name,
            "RETRY": str(self.retry_number),
            "DAGManJobId": str(self.dag_id),
        }


def render_job(description: SubmitFile, context: NodeContext, *, owner: str, site: str) -> JobSpec:
    """The job of a node at its site. Raises CannotRender."""
    try:
        values, used = _expanded(description, context)
        return _job_spec(values, used, description, context, owner, site)
    except CannotRender:
        raise
    except (ValueError, OverflowError, PilotageError) as error:
        raise CannotRender(f"node {context.node_name}: {error}") from error


def _expanded(
    description: SubmitFile, context: NodeContext
) -> tuple[dict[str, str], dict[str, str]]:
    """The commands' values, and what of the site's ad they used, as `MATCH_<Attr>`."""
    macros = {**description.commands, **context.macros()}
    values: dict[str, str] = {}
    used: dict[str, str] = {}
    for name, text in description.commands.items():
        expanded = expand_references(
            expand_macros(text, macros),
            environment=context.environment,
            target=context.match_attributes,
            evaluator=context.evaluator,
        )
        values[name] = expanded.text
        used |= expanded.used
    return values, used


def _job_spec(
    values: Mapping[str, str],
    used: Mapping[str, str],
    description: SubmitFile,
    context: NodeContext,
    owner: str,
    site: str,
) -> JobSpec:
    executable = values.get("executable", "").strip()
    if not executable:
        raise CannotRender(f"node {context.node_name}: the submit description names no executable")
    if len(executable) > _MAX_PATH_LENGTH:
        raise ValueError(f"executable is longer than {_MAX_PATH_LENGTH} characters")
    attributes = _attributes(description, context)
    arguments = values.get("arguments", "")
    environment = values.get("environment", "")
    if len(arguments) + len(environment) > _MAX_TEXT_LENGTH:
        raise ValueError(f"arguments and environment exceed {_MAX_TEXT_LENGTH} characters")
    return JobSpec(
        name=context.node_name,
        executable=executable if executable.startswith("/") else checked_path(executable),
        needs=Needs.of(
            owner,
            cpu_time_s=_whole(attributes, "CPUTimeSeconds", CPU_SEGMENTS_S[0]),
            cores=_whole(values, "request_cpus", 1),
            memory_mb=parse_memory_mb(values.get("request_memory", "0")),
            sites=[site] if site else [],
        ),
        arguments=tuple(environments.parse_arguments(arguments)),
        environment=environments.parse_environment(environment),
        input_files=file_list(values.get("transfer_input_files", "")),
        output_files=file_list(values.get("transfer_output_files", "")),
        stdout_name=_optional_path(values.get("output", "")),
        stderr_name=_optional_path(values.get("error", "")),
        attributes={
            **attributes,
            **{name: value for name, value in values.items() if name not in _TAKEN},
            **used,
        },
        wall_limit_s=_whole(values, "allowed_execute_duration", _WALL_LIMIT_S),
    )


def _whole(values: Mapping[str, str], name: str, default: int) -> int:
    text = values.get(name, str(default)).strip()
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ValueError(f"{name} is not a whole number: {text[:80]}")
    return int(text)


def _attributes(description: SubmitFile, context: NodeContext) -> dict[str, str]:
    """`+Name` attributes of the description and of the node's VARS, which win."""
    given = {
        **description.attributes,
        **{name[1:]: value for name, value in context.variables.items() if name.startswith("+")},
    }
    return {name: expand_macros(text, context.macros()) for name, text in given.items()}


def _optional_path(text: str) -> str:
    return checked_path(text.strip()) if text.strip() else ""


def file_list(text: str) -> tuple[str, ...]:
    """Names separated by commas, each checked to stay inside the workspace."""
    return tuple(checked_path(name.strip()) for name in text.split(",") if name.strip())


def parse_memory_mb(text: str) -> int:
    """A `request_memory` value in MB: a plain number is MB, suffixes K, M, G, T are understood."""
    found = _MEMORY.match(text.strip())
    if found is None:
        raise ValueError(f"request_memory is not an amount of memory: {text[:80]}")
    amount_mb = float(found.group(1)) * _MB_PER_UNIT[found.group(2).upper()]
    if amount_mb > _MAX_MEMORY_MB:
        raise ValueError(f"request_memory is more than {_MAX_MEMORY_MB} MB: {text}")
    return round(amount_mb)
