"""Call of a helper program in a process of its own, for elements: one question, one answer.

The question goes to its standard input as JSON, so secrets are no arguments; a process that hangs
is killed at the time limit. The program prints `{"answer": ...}`, or `{"error", "is_refusal"}`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from wms.elements.protocol import Refused, Unreachable
from wms.elements.runner import CommandRunner, TimeLimit

#: Before each line of a library's log.
_LOG_TIME = re.compile(r"^[0-9/]+ [0-9:.]+ ")
_LONGEST = 500
_NOTHING = re.compile(r"(?!)")


def ask(
    runner: CommandRunner,
    program: str,
    question: Mapping[str, object],
    limit: TimeLimit,
    *,
    refusal: re.Pattern[str] = _NOTHING,
) -> Any:
    """Return the answer of the Python program; raise `Refused` or `Unreachable`.

    An error that the program does not call a refusal is one where `refusal` is found in it.
    """
    argv = [sys.executable, "-I", program]
    done = runner.run(argv, stdin=json.dumps(question), timeout_s=limit.left_s())
    last_words = _last_words(done.stderr)
    try:
        said = json.loads(done.stdout)
        if "answer" in said:
            return said["answer"]
        why = ": ".join(filter(None, (str(said["error"])[:_LONGEST], last_words)))
        is_refusal = said["is_refusal"] or refusal.search(why)
    except (ValueError, TypeError, KeyError) as error:
        raise Unreachable(f"no answer: {last_words}" if last_words else "no answer") from error
    raise Refused(why) if is_refusal else Unreachable(why)


def _last_words(stderr: str) -> str:
    lines = stderr.strip().splitlines()
    return _LOG_TIME.sub("", lines[-1])[:_LONGEST] if lines else ""
