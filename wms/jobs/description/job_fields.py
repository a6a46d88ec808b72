"""Fields of a job, read from submit commands with macros expanded: executable, files, arguments.

Also environment, retries and policy expressions, with checks of paths and of the length of texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from matching.ads.ad_cost import check_cost
from matching.ads.classads import parse_expression
from matching.descriptions import environments
from wms.jobs.content.paths import MAX_PATH_BYTES, path_in
from wms.jobs.description import container_images, directive_commands
from wms.jobs.description.file_names import file_list, optional_path, output_list
from wms.jobs.description.file_urls import url_fault
from wms.jobs.description.needs import read_priority, whole
from wms.jobs.specs import JobSpec

Texts = Mapping[str, str]

#: Limits on the text that a job carries to its pilot.
_MAX_TEXT_LENGTH = 128 * 1024
_MAX_ATTRIBUTES_LENGTH = 64 * 1024
_WALL_LIMIT_S = 86_400
_MAX_RETRIES = 1000
_DEFAULT_RETRIES = 2
#: Commands beside `max_retries` that ask for retries.
_OF_RETRIES = ("retry_until", "success_exit_code")
#: The commands whose expressions decide about a job, by what they do.
VERDICTS = {
    "periodic_hold": "hold",
    "periodic_release": "release",
    "periodic_remove": "remove",
    "on_exit_hold": "on_exit_hold",
    "on_exit_remove": "on_exit_remove",
    "retry_until": "retry_until",
    "success_exit_code": "success_exit_code",
    "periodic_hold_reason": "hold_reason",
    "periodic_hold_subcode": "hold_subcode",
    "periodic_release_reason": "release_reason",
    "periodic_remove_reason": "remove_reason",
    "on_exit_hold_reason": "on_exit_hold_reason",
    "on_exit_hold_subcode": "on_exit_hold_subcode",
}
#: What such an expression may cost to evaluate, in the steps of `adcost`: it is done again and
#: again, for every job. Too little for a pattern.
_MOST_STEPS = 8 * 1024
_SHELL = "/bin/sh"
_INPUTS = directive_commands.INPUTS
_WHOLE = re.compile(r"-?[0-9]{1,9}\Z")


@dataclass(frozen=True, slots=True)
class JobField:
    """A field of the job, the commands that it is read from, and the function that reads them."""

    name: str
    commands: tuple[str, ...]
    read: Callable[[Texts], Any]


def _executable(texts: Texts) -> str:
    name = texts.get("executable", "").strip()
    if texts.get("shell", "").strip():
        if name:
            raise ValueError("both executable and shell are given")
        return _SHELL
    if not name:
        raise ValueError("no executable is named")
    return checked_executable(name)


def checked_executable(name: str, directory: str = "") -> str:
    """Path of an executable in the workspace; an absolute path is one of the worker node.

    Raises ValueError and InvalidInput.
    """
    if not name.startswith("/"):
        if fault := url_fault(name):
            raise ValueError(fault)
        return path_in(directory, name, field="executable")
    if len(name) > MAX_PATH_BYTES:
        raise ValueError(f"executable is longer than {MAX_PATH_BYTES} characters")
    return name


def _arguments(texts: Texts) -> tuple[str, ...]:
    if shell := texts.get("shell", "").strip():
        if texts.get("arguments", "").strip():
            raise ValueError("both arguments and shell are given")
        return "-c", shell
    return tuple(environments.parse_arguments(texts.get("arguments", "")))


def _environment(texts: Texts) -> dict[str, str]:
    return environments.parse_environment(texts.get("environment", ""))


def checked_length(spec: JobSpec) -> int:
    """Number of characters that are stored with the job.

    Raises ValueError for more text than may be sent to a pilot with it.
    """
    sent, attributes = _length_of_sent(spec), _length_of(spec.attributes)
    if sent > _MAX_TEXT_LENGTH:
        raise ValueError(f"arguments and environment exceed {_MAX_TEXT_LENGTH} characters")
    if attributes > _MAX_ATTRIBUTES_LENGTH:
        raise ValueError(f"the attributes of the job exceed {_MAX_ATTRIBUTES_LENGTH} characters")
    return sent + attributes + _length_of_rest(spec)


def text_length(spec: JobSpec) -> int:
    """Number of characters that are stored with the job."""
    return _length_of_sent(spec) + _length_of(spec.attributes) + _length_of_rest(spec)


def _length_of_sent(spec: JobSpec) -> int:
    return sum(map(len, spec.arguments)) + _length_of(spec.environment)


def _length_of_rest(spec: JobSpec) -> int:
    length = sum(map(len, chain(spec.input_files, spec.output_files)))
    late = spec.late.get("texts") if spec.late else None
    for texts in (spec.periodic, spec.directives, late):
        # Of every job it is asked, and most have few of them.
        if texts:
            length += _length_of(texts)
    return length


def _length_of(texts: Mapping[str, Any]) -> int:
    length = sum(map(len, texts))
    for value in texts.values():
        if isinstance(value, Mapping):
            length += _length_of(value)
        elif isinstance(value, list):
            length += sum(map(len, value))
        else:
            length += len(value) if isinstance(value, str) else 8
    return length


def _inputs(texts: Texts) -> tuple[str, ...]:
    names = chain(*(file_list(texts.get(name, "")) for name in _INPUTS))
    more = directive_commands.stdin_name(texts), container_images.workspace_image(texts)
    fetched = directive_commands.input_urls(texts)
    return tuple(dict.fromkeys(each for each in (*names, *more) if each and each not in fetched))


def _retries(texts: Texts) -> int:
    most = whole(texts, "max_retries", 0)
    if most > _MAX_RETRIES:
        raise ValueError(f"max_retries must be from 0 to {_MAX_RETRIES}, not {most}")
    is_said = bool(texts.get("max_retries", "").strip())
    if not is_said and any(texts.get(name, "").strip() for name in _OF_RETRIES):
        # As many as HTCondor tries where nothing is said.
        return _DEFAULT_RETRIES
    return most


def _policy_expressions(texts: Texts) -> dict[str, str] | None:
    """Policy expressions of the job (`periodic_hold`, `on_exit_remove`, ...); None if there are
    none.
    """
    given = {VERDICTS[name]: text.strip() for name, text in texts.items() if text.strip()}
    code = given.get("success_exit_code")
    if code is not None and not _WHOLE.match(code):
        raise ValueError(f"success_exit_code is not a whole number: {code[:80]}")
    for name, text in given.items():
        if name != "success_exit_code":
            parse_expression(text)
            check_cost({"Verdict": text}, most_steps=_MOST_STEPS)
    return given or None


#: Everything but the needs, the attributes and the place.
FIELDS = (
    JobField("executable", ("executable", "shell"), _executable),
    JobField("arguments", ("arguments", "shell"), _arguments),
    JobField("environment", ("environment",), _environment),
    JobField("input_files", (*_INPUTS, "input", *container_images.COMMANDS), _inputs),
    JobField(
        "output_files",
        ("transfer_output_files",),
        lambda texts: output_list(texts.get("transfer_output_files", "")),
    ),
    JobField("stdout_name", ("output",), lambda texts: optional_path(texts.get("output", ""))),
    JobField("stderr_name", ("error",), lambda texts: optional_path(texts.get("error", ""))),
    JobField(
        "directory", ("initialdir",), lambda texts: optional_path(texts.get("initialdir", ""))
    ),
    JobField("priority", ("priority",), read_priority),
    JobField(
        "wall_limit_s",
        ("allowed_execute_duration",),
        lambda texts: whole(texts, "allowed_execute_duration", _WALL_LIMIT_S),
    ),
    JobField("max_retries", ("max_retries", *_OF_RETRIES), _retries),
    JobField("periodic", tuple(VERDICTS), _policy_expressions),
    JobField("directives", directive_commands.COMMANDS, directive_commands.read_directives),
)
