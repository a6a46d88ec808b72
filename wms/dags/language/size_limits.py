"""Limits on the size of a DAG and of its files."""

from __future__ import annotations

from dataclasses import dataclass

#: After so many faults the rest is not read: nobody mends more at once.
MAX_FINDINGS = 200
MAX_NAME_LENGTH = 255
MAX_RETRIES = 1000
#: Attempts of a data placement.
MAX_DATA_ATTEMPTS = 100
#: The greatest number of a rescue.
MAX_RESCUES = 999
#: Characters of what ENV SET gives in all: every script is started with it.
MAX_ENVIRONMENT_LENGTH = 64 * 1024
#: VARS of one node.
MAX_VARIABLES = 1000
#: Lines of one file: each takes room in memory, empty ones too.
MAX_LINES = 10_000_000
#: What it takes to read a text is counted in lines: to open one takes as long as so many short
#: lines, and a long line as long as one for each so many of its characters.
LINES_PER_OPENING, CHARACTERS_PER_LINE = 100, 100
#: So much may be read again for splices, and so many times what is read once, so that every line
#: may be a splice. More than that is made by splices that each read another one twice, and that.
READ_AGAIN_LINES, READ_AGAIN = 2_000_000, 200
#: So many values per allowed node may be set by lines for ALL_NODES.
VALUES_PER_NODE = 20
#: So many nodes of splices may be looked at for each allowed arc: every arc has two ends.
ENDS_PER_ARC = 2


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Limits of one submission: text, files, depth of splices, nodes and arcs."""

    max_text_bytes: int = 256 * 1024 * 1024
    max_files: int = 500
    max_splice_depth: int = 50
    max_nodes: int = 2_000_000
    max_arcs: int = 5_000_000
