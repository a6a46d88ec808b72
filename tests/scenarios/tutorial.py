"""Commands of a document: its shell blocks below a heading, as one script."""

from __future__ import annotations

import re
from pathlib import Path

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_below(document: Path, heading: str) -> str:
    """The shell blocks from a heading up to the next one of its rank."""
    text = document.read_text(encoding="utf-8")
    rank = heading.partition(" ")[0]
    _, _, rest = text.partition(f"\n{heading}\n")
    section = re.split(rf"^{rank} ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return "\n".join(_BLOCK.findall(section))
