"""Helper program of `HTCondorElement`: one question to a schedd or collector, in its own process.

HTCondor's library keeps its settings, its tokens and its sessions for a whole process, and a call
that hangs cannot be interrupted. So each question is put by `python -I htcondor_helper.py`, with
the question as JSON on its input and the answer as JSON on its output; the settings are in its
environment. While it fetches a log it can write nowhere else. It imports nothing of Pilotage.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any

import classad2
import htcondor2

Question = Mapping[str, Any]

#: Cancelled and completed pilots stay in the queue until they are forgotten.
_ENDED = "(JobStatus == 3 || JobStatus == 4)"

# Landlock, see `man 7 landlock`: system calls, which have these numbers on every machine, and
# rights.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_WRITE_FILE = 1 << 1
#: Write files, remove and make entries of every kind.
_WRITING = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))


class ScheddRefusal(Exception):
    """The schedd answered, and the answer is no."""


def submit(question: Question) -> list[str]:
    """Put all pilots of a batch into the queue as one cluster, and send their script."""
    schedd = _schedd(question)
    description = htcondor2.Submit(question["description"])
    result = schedd.submit(description, count=question["count"], spool=True)
    try:
        schedd.spool(result)
    except Exception as error:
        # Without its script no pilot of the batch can ever start.
        reason = ("the script could not be sent", 1)
        schedd.act(htcondor2.JobAction.Remove, f"ClusterId == {result.cluster()}", reason)
        raise ScheddRefusal(f"the script could not be sent: {error}") from error
    first = result.first_proc()
    return [f"{result.cluster()}.{first + index}" for index in range(result.num_procs())]


def query(question: Question) -> list[dict[str, Any]]:
    """Return the chosen attributes of all jobs that fit the constraint."""
    found = _schedd(question).query(question["constraint"], question["attributes"])
    return [_plain(ad, question["attributes"]) for ad in found]


def remove(question: Question) -> None:
    """Remove the jobs that fit the constraint and have not ended."""
    constraint = f"({question['constraint']}) && !{_ENDED}"
    _schedd(question).act(htcondor2.JobAction.Remove, constraint, (question["reason"], 1))


def forget(question: Question) -> None:
    """Take ended jobs that fit the constraint out of the queue, with their files."""
    schedd = _schedd(question)
    # A removed job is gone for good only after its last process is.
    constraint = f"({question['constraint']}) && {_ENDED} && RemoteHost is undefined"
    if not schedd.query(constraint, ["ClusterId"], limit=1):
        return
    schedd.edit(constraint, "LeaveJobInQueue", "false")
    for action in (htcondor2.JobAction.Remove, htcondor2.JobAction.RemoveX):
        schedd.act(action, constraint, ("forgotten", 1))


def retrieve(question: Question) -> None:
    """Fetch the output of one ended job into the folder."""
    # The schedd decides what is written, and where: a lying one must not reach our files.
    _write_only_into(question["folder"])
    limit = question["limit_bytes"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    schedd = _schedd(question)
    # Where a job was submitted is where its output goes; that folder was of another process.
    schedd.edit(question["pilot_id"], "SUBMIT_Iwd", classad2.quote(question["folder"]))
    schedd.retrieve(question["pilot_id"])


def machines(question: Question) -> list[dict[str, Any]]:
    """Return the chosen attributes of all slots of the pool."""
    collector = htcondor2.Collector(question["collector"])
    found = collector.query(htcondor2.AdType.Startd, projection=question["attributes"])
    return [_plain(ad, question["attributes"]) for ad in found]


def _schedd(question: Question) -> htcondor2.Schedd:
    collector = htcondor2.Collector(question["collector"])
    name = question["schedd"]
    if name:
        location = collector.locate(htcondor2.DaemonType.Schedd, name)
        known = [] if location is None else [location]
    else:
        known = collector.locateAll(htcondor2.DaemonType.Schedd)
    if not known:
        raise ConnectionError(f"the collector knows no schedd {name}".strip())
    if len(known) > 1:
        names = ", ".join(sorted(ad["Name"] for ad in known)[:10])
        raise ScheddRefusal(f"the pool has several schedds: name one of {names}")
    return htcondor2.Schedd(known[0])


def _write_only_into(folder: str) -> None:
    """Take from this process, by Landlock, the right to change anything outside the folder."""
    libc = ctypes.CDLL(None, use_errno=True)
    rights = struct.pack("=Q", _WRITING)
    ruleset = libc.syscall(_CREATE_RULESET, rights, ctypes.c_size_t(len(rights)), 0)
    if ruleset < 0:
        raise ScheddRefusal(
            "the kernel has no Landlock (Linux 5.13), without which no log is fetched"
        )
    for path, allowed in ((folder, _WRITING), ("/dev/null", _WRITE_FILE)):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", allowed, descriptor)
        _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
        os.close(descriptor)
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _checked(result: int) -> None:
    if result < 0:
        raise ScheddRefusal(f"Landlock: {os.strerror(ctypes.get_errno())}; no log is fetched")


def _plain(ad: Mapping[str, Any], attributes: list[str]) -> dict[str, Any]:
    values = {name: ad.get(name) for name in attributes}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, str | int | float) and not isinstance(value, classad2.Value)
    }


_OPERATIONS: dict[str, Callable[[Question], Any]] = {
    each.__name__: each for each in (submit, query, remove, forget, retrieve, machines)
}


def main() -> None:
    """Read the question, print the answer; an error is an answer, too."""
    # Errors of the network and of authentication are told nowhere else: on standard error.
    htcondor2.enable_debug()
    question = json.load(sys.stdin)
    answer: dict[str, Any]
    try:
        answer = {"answer": _OPERATIONS[question["operation"]](question)}
    except ScheddRefusal as error:
        answer = {"error": str(error), "is_refusal": True}
    except Exception as error:  # noqa: BLE001 - whatever it is, the other process has to know
        answer = {"error": f"{type(error).__name__}: {error}", "is_refusal": False}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
