"""DEBUG of a script: what it wrote is added to a file of the workspace, under a banner."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import datetime

from wms.core.errors import InvalidInput
from wms.dags.engine.node_features import Script
from wms.dags.models import ScriptRun
from wms.dags.scripts.process import STDERR, STDOUT, Ended
from wms.jobs.content.paths import path_in

_STREAMS = {"STDOUT": STDOUT, "STDERR": STDERR}


def keeps_streams_apart(script: Script) -> bool:
    """True where the file is to have one of the two streams."""
    return bool(script.debug_file) and script.debug_stream in _STREAMS


def debug_additions(
    run: ScriptRun, script: Script, ended: Ended, *, now: datetime
) -> Mapping[str, bytes]:
    """What is added to which file; nothing where none is asked for. Raises InvalidInput."""
    if not script.debug_file:
        return {}
    try:
        path = path_in(run.directory, script.debug_file)
    except InvalidInput as error:
        raise InvalidInput.of(f"DEBUG: {error.findings[0].message}") from None
    stream = _STREAMS.get(script.debug_stream)
    text = ended.streams.get(stream, b"") if stream else ended.output
    if text and not text.endswith(b"\n"):
        text += b"\n"
    return {path: _banner(run, ended, now) + text}


def _banner(run: ScriptRun, ended: Ended, now: datetime) -> bytes:
    command = shlex.join([run.executable, *run.arguments])
    attempt = f" Attempt={run.retry_number}" if run.retry_number else ""
    line = (
        f"*** Node={run.node.name} Type={run.kind.upper()}{attempt} Status={ended.exit_code} "
        f"Ended={now:%Y-%m-%dT%H:%M:%SZ} Command={command}\n"
    )
    return (line + (f"*** {ended.failure}\n" if ended.failure else "")).encode()
