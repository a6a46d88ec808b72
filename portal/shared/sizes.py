"""Text of a size in bytes, or of bytes in a second, with a binary unit: `1.2 MiB`."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB")


def size(size_bytes: float) -> str:
    """A size in bytes with a binary unit."""
    whole = round(size_bytes)
    if whole < 1024:
        return f"{whole} B"
    steps = min((whole.bit_length() - 1) // 10, len(_UNITS))
    amount, unit = whole / 1024**steps, _UNITS[steps - 1]
    return f"{amount:.3g} {unit}" if amount < 100 else f"{amount:.0f} {unit}"
