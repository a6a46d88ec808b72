"""Checks of the node: small programs that a pilot runs before its first job, and in between.

Each is a process of its own. It reads one JSON object from standard input, and the last line that
it prints is one too: `is_ok`, where it is false `kind` and `reason`, and `metrics`.
"""

from __future__ import annotations

#: The checks that every pilot carries, in their order.
BUILT_IN = ("disk", "memory", "clock", "cpus", "platform", "software", "network", "scratch")
