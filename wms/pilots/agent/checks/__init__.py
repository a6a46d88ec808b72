"""Checks of the node: small programs that a pilot runs before its first job, and in between.

Each is a process of its own. It reads one JSON object from standard input, and the last line that
it prints is one too: `is_ok`, where it is false `kind` and `reason`, and perhaps `metrics`, and
what it publishes: `attributes` of the node and `variables` for payloads (see `publication`).
"""

from __future__ import annotations

from collections.abc import Mapping

#: The checks that every pilot carries, in their order.
BUILT_IN = (
    "disk", "memory", "clock", "cpus", "platform", "software", "network", "scratch", "apptainer",
    "cvmfs", "gpu", "benchmark",
)  # fmt: skip
#: Built-in checks that are run only where the queue gives them this setting.
NEEDED_SETTINGS: Mapping[str, str] = {
    "platform": "platforms", "software": "directories", "network": "addresses",
    "cvmfs": "repositories", "benchmark": "seconds",
}  # fmt: skip
#: Attributes that built-in checks publish, with their types.
BUILT_IN_ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "apptainer": {"Available": "boolean", "Program": "string", "Version": "string"},
    "cvmfs": {"Available": "boolean", "Repositories": "string"},
    "gpu": {
        "Count": "integer",
        "Model": "string",
        "MemoryMb": "integer",
        "DriverVersion": "string",
        "CudaVersion": "real",
    },
    "benchmark": {"CpuPower": "real"},
}
