"""Runner of node checks in the pilot: each as a process with a time limit; results read."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..control import Control
from . import BUILT_IN_ATTRIBUTES
from .publication import (
    NOTHING_DECLARED,
    NOTHING_PUBLISHED,
    Declaration,
    Publication,
    read_publication,
)

#: Variables of the pilot's environment that a check sees.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ")
#: Bytes at the end of a check's output that are read.
MOST_OUTPUT_BYTES = 64 * 1024
MOST_METRICS = 50
REASON_LENGTH = 1000
_TEXT_LENGTH = 200
_SLICE_S = 0.5
_REAP_S = 2.0

log = logging.getLogger("pilot")


@dataclass(frozen=True)
class Check:
    """One check of the manifest; an added one has the hash of its script."""

    name: str
    is_built_in: bool
    sha256: str
    time_limit_s: float
    period_s: float | None
    settings: Mapping[str, Any]
    publishes: Declaration = NOTHING_DECLARED

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Check:
        """Read one entry of a manifest."""
        period_s = data.get("period_s")
        return cls(
            name=str(data["name"]),
            is_built_in=bool(data["builtin"]),
            sha256=str(data.get("sha256", "")),
            time_limit_s=float(data["time_limit_s"]),
            period_s=None if period_s is None else float(period_s),
            settings=dict(data.get("settings", {})),
            publishes=Declaration.from_json(data.get("publishes")),
        )


@dataclass(frozen=True)
class NodeCheckResult:
    """Result of one check of the node."""

    name: str
    is_ok: bool
    kind: str = ""
    reason: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)
    published: Publication = NOTHING_PUBLISHED
    seconds: float = 0.0

    def to_json(self, key: str) -> dict[str, Any]:
        """Result as the server reads it; `key` is the pilot's own name for it."""
        return {
            "key": key,
            "name": self.name,
            "is_ok": self.is_ok,
            "kind": self.kind,
            "reason": self.reason,
            "metrics": self.metrics,
            "attributes": dict(self.published.attributes),
            "variables": dict(self.published.variables),
            "skipped": "; ".join(self.published.skipped)[:REASON_LENGTH],
            "seconds": round(self.seconds, 3),
        }


class CheckRunner:
    """Checks of one pilot. `facts` are the input of each besides its settings."""

    def __init__(
        self,
        checks: Sequence[Check],
        *,
        files: Path,
        work_dir: Path,
        control: Control,
        facts: Callable[[], Mapping[str, Any]],
    ) -> None:
        self.checks = tuple(checks)
        self._files = files
        self._work_dir = work_dir
        self._control = control
        self._facts = facts

    def run(self, *, goes_on: bool = False) -> list[NodeCheckResult]:
        """Run all in their order up to the first that fails, or until the pilot has to go.

        Where it `goes_on`, a failure is no end.
        """
        results: list[NodeCheckResult] = []
        for check in self.checks:
            if self._control.is_terminated:
                break
            results.append(self.run_one(check))
            if not results[-1].is_ok and not goes_on:
                break
        return results

    def run_one(self, check: Check) -> NodeCheckResult:
        """Run one check; whatever goes wrong is its failure."""
        started = self._control.clock()
        try:
            result = self._judge(check)
        except OSError as error:
            result = NodeCheckResult(check.name, False, "node", f"the check cannot be run: {error}")
        result = replace(result, seconds=self._control.clock() - started)
        for skipped in result.published.skipped:
            log.warning("check %s: not published: %s", check.name, skipped)
        log.log(
            logging.INFO if result.is_ok else logging.ERROR,
            "check %s: %s, %.2f s",
            check.name,
            "ok" if result.is_ok else result.reason,
            result.seconds,
        )
        return result

    def _judge(self, check: Check) -> NodeCheckResult:
        command = self._command(check)
        if command is None:
            reason = "its script is not the one that the manifest lists: not run"
            return NodeCheckResult(check.name, False, "corruption", reason)
        given = {**self._facts(), "name": check.name, "settings": dict(check.settings)}
        with tempfile.TemporaryDirectory(prefix="check-", dir=self._work_dir) as directory:
            return self._execute(check, command, given, Path(directory))

    def _command(self, check: Check) -> list[str] | None:
        if check.is_built_in:
            return [sys.executable, "-I", "-S", sys.argv[0], "check", check.name]
        script = self._files / check.sha256
        if hashlib.sha256(script.read_bytes()).hexdigest() != check.sha256:
            return None
        script.chmod(0o700)
        return [str(script)]

    def _execute(
        self, check: Check, command: list[str], given: Mapping[str, Any], directory: Path
    ) -> NodeCheckResult:
        (directory / "given").write_text(json.dumps(given))
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        with (directory / "given").open("rb") as source, (directory / "out").open("wb") as sink:
            process = subprocess.Popen(
                command,
                stdin=source,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env={**environment, "TMPDIR": str(directory)},
                start_new_session=True,
            )
            try:
                is_over = self._wait(process, check.time_limit_s)
            finally:
                _kill(process)
        if not is_over:
            return self._unfinished(check)
        return _read_result(check, process.returncode, _tail(directory / "out"))

    def _unfinished(self, check: Check) -> NodeCheckResult:
        if self._control.is_terminated:
            reason = "interrupted: the pilot has to go"
            return NodeCheckResult(check.name, False, "timeout", reason)
        reason = f"not over after {check.time_limit_s:g} s"
        if check.is_built_in and check.name in BUILT_IN_ATTRIBUTES:
            # It looks for software that jobs may ask for: a program or mount that hangs is none.
            return NodeCheckResult(check.name, True, metrics={"timeout": reason})
        return NodeCheckResult(check.name, False, "timeout", reason)

    def _wait(self, process: subprocess.Popen[bytes], limit_s: float) -> bool:
        """Wait for the end; tell whether it came in time, and before the pilot's own."""
        until = self._control.clock() + limit_s
        while not self._control.is_terminated:
            left_s = until - self._control.clock()
            if left_s <= 0:
                return False
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(min(left_s, _SLICE_S))
                return True
        return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill all that is left of a check; one that hangs in the kernel is left to itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)


def _tail(file: Path) -> str:
    with file.open("rb") as source:
        source.seek(max(0, file.stat().st_size - MOST_OUTPUT_BYTES))
        return source.read().decode("utf-8", "replace")


def _read_result(check: Check, code: int, output: str) -> NodeCheckResult:
    """Result from the output of a check."""
    name = check.name
    lines = output.strip().splitlines()
    last = lines[-1] if lines else ""
    if len(lines) == 1 and len(output) >= MOST_OUTPUT_BYTES:
        reason = f"its last line has more than {MOST_OUTPUT_BYTES} bytes"
        return NodeCheckResult(name, False, "check", reason)
    try:
        said = json.loads(last)
    except (ValueError, RecursionError):
        said = None
    is_result = isinstance(said, dict) and isinstance(said.get("is_ok"), bool)
    if code != 0 and not (is_result and not said["is_ok"]):
        reason = f"exit code {code}: {last}" if code > 0 else f"ended by signal {-code}: {last}"
        return NodeCheckResult(name, False, "check", reason[:REASON_LENGTH])
    if not is_result:
        reason = f"its last line is no result: {last}"
        return NodeCheckResult(name, False, "check", reason[:REASON_LENGTH])
    if said["is_ok"]:
        published = read_publication(said.get("attributes"), said.get("variables"), check.publishes)
        return NodeCheckResult(
            name, True, metrics=_metrics(said.get("metrics")), published=published
        )
    return NodeCheckResult(
        name,
        False,
        kind=str(said.get("kind") or "node")[:32],
        reason=str(said.get("reason") or "no reason given")[:REASON_LENGTH],
        metrics=_metrics(said.get("metrics")),
    )


def _metrics(said: Any) -> dict[str, Any]:
    """Metrics of a check: numbers and short texts."""
    if not isinstance(said, dict):
        return {}
    kept = {
        str(name)[:64]: value[:_TEXT_LENGTH] if isinstance(value, str) else value
        for name, value in said.items()
        if isinstance(value, (str, int, float)) and abs(_number(value)) < 1e15
    }
    return dict(list(kept.items())[:MOST_METRICS])


def _number(value: Any) -> float:
    return 0.0 if isinstance(value, str) else float(value)
