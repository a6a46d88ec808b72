"""Text of a size in bytes with a binary unit: `1.2 MiB`."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB")


def size(size_bytes: int) -> str:
    """A size in bytes with a binary unit."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    steps = min((size_bytes.bit_length() - 1) // 10, len(_UNITS))
    amount, unit = size_bytes / 1024**steps, _UNITS[steps - 1]
    return f"{amount:.3g} {unit}" if amount < 100 else f"{amount:.0f} {unit}"
