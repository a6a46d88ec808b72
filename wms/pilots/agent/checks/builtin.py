"""Built-in node checks of pilots: disk, memory, clock, CPUs, platform, software, network, scratch.

With those of `detection` and `benchmark`, which publish what they find.
Each runs as a program of its own, named on the command line.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import node
from .benchmark import benchmark
from .detection import apptainer, cvmfs, gpu
from .finding import Finding, Given

LEAST_DISK_MB = 100
LEAST_MEMORY_MB = 64
MOST_SKEW_S = 300.0
SCRATCH_MB = 1
CONNECT_TIMEOUT_S = 10.0

_MB = 1024 * 1024
#: As long may the text of a metric be.
_LONGEST_METRIC = 200


def disk(given: Given) -> Finding:
    """There are `least_mb` free where jobs run."""
    least_mb = given["settings"].get("least_mb", LEAST_DISK_MB)
    free_mb = node.free_disk_mb(Path(given["work_dir"]))
    return _at_least("MB of disk are free", free_mb, least_mb, "disk_free_mb")


def memory(given: Given) -> Finding:
    """There are `least_mb` of memory that nobody uses."""
    least_mb = given["settings"].get("least_mb", LEAST_MEMORY_MB)
    return _at_least(
        "MB of memory are free", node.available_memory_mb(), least_mb, "memory_free_mb"
    )


def clock(given: Given) -> Finding:
    """The clock is at most `most_skew_s` from the server's, as far as that is known."""
    skew_s = given.get("clock_skew_s")
    if skew_s is None:
        return Finding()
    most_s = given["settings"].get("most_skew_s", MOST_SKEW_S)
    reason = ""
    if abs(skew_s) > most_s:
        side = "behind" if skew_s > 0 else "ahead of"
        reason = f"the clock is {abs(skew_s):.0f} s {side} the server's, allowed are {most_s:g} s"
    return Finding(reason, metrics={"clock_skew_s": skew_s})


def cpus(given: Given) -> Finding:
    """The pilot may use `least` CPUs."""
    least = given["settings"].get("least", 1)
    return _at_least("CPUs may be used", node.usable_cores(), least, "cpus")


def platform(given: Given) -> Finding:
    """System and architecture are among `platforms`."""
    wanted = given["settings"].get("platforms", [])
    here = node.platform_name()
    reason = f"the platform is {here}, expected is {' or '.join(wanted)}"
    return Finding("" if here in wanted or not wanted else reason, "config", {"platform": here})


def software(given: Given) -> Finding:
    """Each of `directories` is there, can be listed and is not empty."""
    directories = given["settings"].get("directories", [])
    for directory in directories:
        try:
            with os.scandir(directory) as entries:
                is_empty = next(entries, None) is None
        except OSError as error:
            return Finding(f"the software directory {directory} cannot be used: {error.strerror}")
        if is_empty:
            return Finding(f"the software directory {directory} is empty")
    return Finding(metrics=_named(directories))


def _named(directories: list[str]) -> dict[str, str]:
    """Directories as one text, as many as a metric holds."""
    text = ""
    for directory in directories:
        longer = f"{text},{directory}" if text else directory
        if len(longer) > _LONGEST_METRIC:
            break
        text = longer
    return {"software": text} if text else {}


def network(given: Given) -> Finding:
    """Each of `addresses`, as host:port, accepts a connection."""
    for address in given["settings"].get("addresses", []):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
        except (OSError, ValueError) as error:
            return Finding(f"no connection to {address}: {error}", "network")
    return Finding()


def scratch(given: Given) -> Finding:
    """`size_mb` written where jobs run can be read again unchanged."""
    content = os.urandom(_MB) * given["settings"].get("size_mb", SCRATCH_MB)
    file = Path(given["work_dir"]) / "scratch-check"
    try:
        with file.open("wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        is_same = file.read_bytes() == content
        file.unlink()
    except OSError as error:
        return Finding(f"{given['work_dir']} cannot be written: {error.strerror}")
    return Finding("" if is_same else f"{file} holds other bytes than were written", "corruption")


def _at_least(what: str, amount: int, least: int, metric: str) -> Finding:
    reason = "" if amount >= least else f"{amount} {what}, needed are {least}"
    return Finding(reason, metrics={metric: amount})


_CHECKS: dict[str, Callable[[Given], Finding]] = {
    each.__name__: each
    for each in (
        disk,
        memory,
        clock,
        cpus,
        platform,
        software,
        network,
        scratch,
        apptainer,
        cvmfs,
        gpu,
        benchmark,
    )
}


def main() -> int:
    """Run the check that is named on the command line."""
    finding = _CHECKS[sys.argv[2]](json.load(sys.stdin))
    result: dict[str, Any] = {
        "is_ok": not finding.reason,
        "metrics": finding.metrics,
        "attributes": finding.attributes,
    }
    if finding.reason:
        result.update(kind=finding.kind, reason=finding.reason)
    sys.stdout.write(json.dumps(result) + "\n")
    return 0
