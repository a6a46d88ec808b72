"""How large a DAG may be."""

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
#: A file that many splices read counts each time, and an empty one as much as this.
READ_AT_LEAST = 1024
#: So many times the text that all files may have may be read again for splices.
READ_AGAIN = 4
#: So many values per allowed node may be set by lines for ALL_NODES.
VALUES_PER_NODE = 20
#: So many nodes of splices may be looked at for each allowed arc: every arc has two ends.
ENDS_PER_ARC = 2


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of what is read: text and files of one submission, depth of splices, and size."""

    max_text_bytes: int = 256 * 1024 * 1024
    max_files: int = 500
    max_splice_depth: int = 50
    max_nodes: int = 1_000_000
    max_arcs: int = 5_000_000
