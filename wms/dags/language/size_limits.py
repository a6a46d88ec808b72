"""Limits on the size of a DAG and its files: text, lines, findings, names, splices, nodes, arcs.

Also on retries, rescues, attempts of a data placement, VARS of a node, ENV SET, conditions, and
growth.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Faults after which parsing stops: nobody mends more at once.
MAX_FINDINGS = 200
MAX_NAME_LENGTH = 255
MAX_RETRIES = 1000
#: Attempts of a data placement.
MAX_DATA_ATTEMPTS = 100
#: The greatest number of a rescue.
MAX_RESCUES = 999
#: Characters of all ENV SET together: every script is started with them.
MAX_ENVIRONMENT_LENGTH = 64 * 1024
#: VARS of one node.
MAX_VARIABLES = 1000
#: Arcs with a condition: each is evaluated by itself when its parent ends.
MAX_CONDITIONS = 10_000
#: Characters of a condition.
MAX_CONDITION_LENGTH = 1000
#: MAX of REPEAT: each pass is a node.
MAX_PASSES = 10_000
#: Fragments by which one DAG grows: each is read and checked by itself.
MAX_FRAGMENTS = 10_000
#: Lines of one file: each takes memory, empty ones too.
MAX_LINES = 10_000_000
#: What it takes to read a text is counted in lines: to open one takes as long as so many short
#: lines, and a long line as long as one for each so many of its characters.
LINES_PER_OPENING, CHARACTERS_PER_LINE = 100, 100
#: So much may be read again for splices, and so many times what is read once, so that every line
#: may be a splice. More than that is made by splices that each read another one twice, and that.
READ_AGAIN_LINES, READ_AGAIN = 2_000_000, 200
#: Values that lines for ALL_NODES may set, for each allowed node.
VALUES_PER_NODE = 20
#: Nodes of splices that lines may name, for each allowed arc: every arc has two ends.
ENDS_PER_ARC = 2


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Limits of one submission: text, files, depth of splices, nodes and arcs."""

    max_text_bytes: int = 256 * 1024 * 1024
    max_files: int = 500
    max_splice_depth: int = 50
    max_nodes: int = 2_000_000
    max_arcs: int = 5_000_000
