"""Parser of `transfer_output_remaps`: new names of outputs, as HTCondor writes them."""

from __future__ import annotations

import re

#: A character, or one behind a backslash that takes its meaning away.
_CHARACTER = re.compile(r"\\([=;\\])|(.)", re.DOTALL)
MAX_REMAPS = 1000


def parse_remaps(text: str) -> dict[str, str]:
    r"""New names by old ones, from `"a = b; c = d"`.

    `\=` and `\;` stand for the characters themselves. Raises ValueError.
    """
    bare = text.strip()
    if len(bare) >= 2 and bare[0] == bare[-1] == '"':
        bare = bare[1:-1]
    remaps: dict[str, str] = {}
    for entry in _entries(bare):
        if not any(part.strip() for part in entry):
            continue
        if len(entry) != 2 or not all(part.strip() for part in entry):
            raise ValueError(f"expected NAME = NEW NAME, found: {'='.join(entry).strip()[:80]}")
        old, new = (part.strip() for part in entry)
        if old in remaps:
            raise ValueError(f"transfer_output_remaps names {old[:80]} twice")
        remaps[old] = new
    if len(remaps) > MAX_REMAPS:
        raise ValueError(f"transfer_output_remaps has more than {MAX_REMAPS} names")
    return remaps


def _entries(text: str) -> list[list[str]]:
    """Entries between semicolons, each cut at its equals signs."""
    entries = [[""]]
    for escaped, character in _CHARACTER.findall(text):
        if character == ";":
            entries.append([""])
        elif character == "=":
            entries[-1].append("")
        else:
            entries[-1][-1] += escaped or character
    return entries
