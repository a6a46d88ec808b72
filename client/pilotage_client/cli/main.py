"""Command line: reads it, calls the command, and turns what went wrong into an exit code.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | refused, or not well: faults were found, or what was waited for ended badly |
| 2 | the command line, a profile or a file of this host is not as it has to be |
| 3 | no token, or one that the portal does not take |
| 4 | not permitted |
| 5 | there is no such object |
| 6 | no answer from the portal, or from something else, or it is too busy |
| 7 | it took longer than was to be waited |
| 130 | interrupted |

`check` and `simulate` have 0, 1 and 2 only: 2 is all that kept them from a verdict.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ..errors import PilotageError, Problem, UsageError, why_of
from .parser import parser
from .printing import here, tell

_INTERRUPTED = 130
_NO_VERDICT = 2
#: Larger differences are told: times that are typed and shown would mislead.
_SKEW_S = 120


def main(arguments: Sequence[str] | None = None, transport: Any = None) -> int:
    """Run the command that the arguments name; its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    given, program = _split(given)
    options = parser().parse_args(given)
    options.program, options.transport = program, transport
    try:
        return _run(options)
    except PilotageError as error:
        _tell_error(error, options)
        return _NO_VERDICT if options.has_verdict else error.exit_code
    except BrokenPipeError:
        # Who reads has had enough; nothing more is to be flushed at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(options: Namespace) -> int:
    home, _, function = options.run.rpartition(":")
    command = getattr(import_module(f".{home}", __package__), function)
    if not options.needs_client:
        return int(command(options))
    from ..client import Client

    with Client(
        options.url or "",
        _token_of(options),
        profile=options.profile or "",
        ca_file=options.ca_file or "",
        transport=options.transport,
    ) as client:
        client.on_delay = _teller()
        try:
            return int(command(client, options))
        finally:
            _tell_skew(client.clock_skew_s)


def _teller() -> Callable[[str], None]:
    """Tells once for each reason in turn why it takes longer."""
    told: list[str] = []

    def tell_once(reason: str) -> None:
        if told[-1:] != [reason]:
            told.append(reason)
            tell(f"{reason}; it is asked again ...")

    return tell_once


def _token_of(options: Namespace) -> str:
    if not options.token_file:
        return ""
    try:
        with open(options.token_file, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{options.token_file} cannot be read: {why_of(error)}.") from None


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Arguments of the command, and behind `--` the program that is to be submitted."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _tell_error(error: PilotageError, options: Namespace) -> None:
    if getattr(options, "json", False) and isinstance(error, Problem):
        from .printing import say_json

        say_json(dict(error.document))
    found = error.findings if isinstance(error, Problem) else ()
    for finding in found:
        tell(str(here(finding, options)))
    # The detail may say the same once more.
    if not any(finding.message in str(error) for finding in found):
        tell(f"pilotage: {error}")
    elif len(found) > 1:
        tell(f"pilotage: {len(found)} faults; nothing was changed.")


def _tell_skew(skew_s: float) -> None:
    if abs(skew_s) < _SKEW_S:
        return
    hours, minutes = divmod(int(abs(skew_s)) // 60, 60)
    amount = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    side = "ahead of" if skew_s > 0 else "behind"
    tell(f"The clock of this host is {amount} {side} the portal's: times mislead until it is set.")
