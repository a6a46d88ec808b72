"""From a node and its submit description to a job: every macro filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matching import environments
from matching.needs import CPU_SEGMENTS_S, BadNeeds
from matching.substitution import Evaluator, expand_references, macro_expander
from wms.core.errors import PilotageError
from wms.dags.needs import COMMANDS, is_need, read_needs, read_priority, whole
from wms.dags.submitfile import SubmitFile
from wms.jobs.paths import checked_path
from wms.jobs.specs import JobSpec

#: Commands that become fields of the job; all others are kept as attributes.
_TAKEN = frozenset(
    {
        "executable", "arguments", "environment", "transfer_input_files", "transfer_output_files",
        "output", "error", "priority", "allowed_execute_duration", *COMMANDS.values(),
    }
)  # fmt: skip
_WALL_LIMIT_S = 86_400
#: What a job may carry to its pilot besides files.
_MAX_TEXT_LENGTH = 128 * 1024
_MAX_PATH_LENGTH = 1024
_WITHOUT_ADS = Evaluator({}, {}, {})


class CannotRender(PilotageError):
    """A job cannot be made of this node; the message says which value is wrong.

    `names` are the commands and attributes at fault, where they are known.
    """

    def __init__(self, message: str, *names: str) -> None:
        super().__init__(message)
        self.names = names


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


@dataclass(frozen=True, slots=True)
class Identity:
    """In whose name jobs are made, and the CPU time segments in force."""

    owner: str
    group: str = ""
    cpu_segments_s: Sequence[int] = CPU_SEGMENTS_S


def render_job(description: SubmitFile, context: NodeContext, identity: Identity) -> JobSpec:
    """The job of a node, with the needs that its description names. Raises CannotRender."""
    try:
        expanded = _expanded(description, context)
        return _job_spec(expanded, context, identity)
    except BadNeeds as error:
        raise CannotRender(f"node {context.node_name}: {error}", *error.fields) from error
    except (ValueError, OverflowError, PilotageError) as error:
        raise CannotRender(f"node {context.node_name}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Expanded:
    """Commands and attributes with their macros filled in, and what of the site's ad they used."""

    commands: Mapping[str, str]
    attributes: Mapping[str, str]
    used: Mapping[str, str]


def _expanded(description: SubmitFile, context: NodeContext) -> _Expanded:
    used: dict[str, str] = {}

    def without_references(text: str) -> str:
        expanded = expand_references(
            text,
            environment=context.environment,
            target=context.match_attributes,
            evaluator=context.evaluator,
        )
        used.update(expanded.used)
        return expanded.text

    expand = macro_expander({**description.commands, **context.macros()})
    commands = {
        name: without_references(expand(text)) for name, text in description.commands.items()
    }
    attributes = {
        name: without_references(text) if is_need(name) else text
        for name, text in attributes_of(description, context).items()
    }
    return _Expanded(commands, attributes, used)


def _job_spec(expanded: _Expanded, context: NodeContext, identity: Identity) -> JobSpec:
    values = expanded.commands
    executable = values.get("executable", "").strip()
    if not executable:
        raise ValueError("the submit description names no executable")
    if len(executable) > _MAX_PATH_LENGTH:
        raise ValueError(f"executable is longer than {_MAX_PATH_LENGTH} characters")
    arguments = values.get("arguments", "")
    environment = values.get("environment", "")
    if len(arguments) + len(environment) > _MAX_TEXT_LENGTH:
        raise ValueError(f"arguments and environment exceed {_MAX_TEXT_LENGTH} characters")
    return JobSpec(
        name=context.node_name,
        executable=executable if executable.startswith("/") else checked_path(executable),
        needs=read_needs(
            values,
            expanded.attributes,
            owner=identity.owner,
            group=identity.group,
            segments_s=identity.cpu_segments_s,
        ),
        arguments=tuple(environments.parse_arguments(arguments)),
        environment=environments.parse_environment(environment),
        input_files=file_list(values.get("transfer_input_files", "")),
        output_files=file_list(values.get("transfer_output_files", "")),
        stdout_name=_optional_path(values.get("output", "")),
        stderr_name=_optional_path(values.get("error", "")),
        attributes={
            **expanded.attributes,
            **{name: value for name, value in values.items() if name not in _TAKEN},
            **expanded.used,
        },
        priority=read_priority(values),
        wall_limit_s=whole(values, "allowed_execute_duration", _WALL_LIMIT_S),
    )


def attributes_of(description: SubmitFile, context: NodeContext) -> dict[str, str]:
    """`+Name` attributes of the description and of the node's VARS, which win."""
    given = {
        **description.attributes,
        **{name[1:]: value for name, value in context.variables.items() if name.startswith("+")},
    }
    expand = macro_expander(context.macros())
    return {name: expand(text) for name, text in given.items()}


def _optional_path(text: str) -> str:
    return checked_path(text.strip()) if text.strip() else ""


def file_list(text: str) -> tuple[str, ...]:
    """Names separated by commas, each checked to stay inside the workspace."""
    return tuple(checked_path(name.strip()) for name in text.split(",") if name.strip())
