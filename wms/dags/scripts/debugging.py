"""DEBUG option of a script: the text to append to its debug file, a banner and the output.

The output is that of both streams, or of one, which is then kept apart.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import datetime

from wms.core.errors import InvalidInput
from wms.dags.engine.node_features import Script
from wms.dags.models import ScriptRun
from wms.dags.scripts.process import STDERR, STDOUT, ProcessResult
from wms.jobs.content.paths import path_in

_STREAMS = {"STDOUT": STDOUT, "STDERR": STDERR}


def keeps_streams_apart(script: Script) -> bool:
    """Whether the file gets only one of the two streams."""
    return bool(script.debug_file) and script.debug_stream in _STREAMS


def debug_additions(
    run: ScriptRun, script: Script, result: ProcessResult, *, now: datetime
) -> Mapping[str, bytes]:
    """Text to append, by path; empty without DEBUG. Raises InvalidInput."""
    if not script.debug_file:
        return {}
    try:
        path = path_in(run.directory, script.debug_file)
    except InvalidInput as error:
        raise InvalidInput.of(f"DEBUG: {error.findings[0].message}") from None
    stream = _STREAMS.get(script.debug_stream)
    text = result.streams.get(stream, b"") if stream else result.output
    if text and not text.endswith(b"\n"):
        text += b"\n"
    return {path: _banner(run, result, now) + text}


def _banner(run: ScriptRun, result: ProcessResult, now: datetime) -> bytes:
    command = shlex.join([run.executable, *run.arguments])
    attempt = f" Attempt={run.retry_number}" if run.retry_number else ""
    line = (
        f"*** Node={run.node.name} Type={run.kind.upper()}{attempt} Status={result.exit_code} "
        f"Ended={now:%Y-%m-%dT%H:%M:%SZ} Command={command}\n"
    )
    return (line + (f"*** {result.failure}\n" if result.failure else "")).encode()
