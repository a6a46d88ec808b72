"""Files of images in the format of Apptainer (SIF): why no container may be made of one.

Their headers tell: an image with other file systems in it than its own read-only one is refused.
"""

from __future__ import annotations

import struct
from pathlib import Path

_MAGIC = b"SIF_MAGIC\0"
_START = struct.Struct("<32s10s3s3s16s2q")
_TABLE = struct.Struct("<6q")
_DESCRIPTOR = struct.Struct("<i?3I2q")
_DESCRIPTOR_BYTES = 585
_EXTRA_AT = 201
_PARTITION = 0x4004
_SQUASHFS, _PRIMARY = 1, 2
_MOST_DESCRIPTORS = 1000


def why_no_image(path: Path) -> str:
    """Reason why a file is no image that a container may be made of; empty if it is one.

    Other file systems, and layers that can be written, would be read by programs with more rights.
    """
    try:
        with path.open("rb") as file:
            start = _START.unpack(file.read(_START.size))
            if start[1] != _MAGIC:
                return "it is no file in the format SIF"
            _, most, offset, *_ = _TABLE.unpack(file.read(_TABLE.size))
            partitions = []
            for index in range(min(most, _MOST_DESCRIPTORS)):
                file.seek(offset + index * _DESCRIPTOR_BYTES)
                content = file.read(_DESCRIPTOR_BYTES)
                kind, is_used, *_ = _DESCRIPTOR.unpack_from(content)
                if is_used and kind == _PARTITION:
                    partitions.append(struct.unpack_from("<2i", content, _EXTRA_AT))
    except (struct.error, ValueError, OverflowError):
        return "it is damaged, or no file in the format SIF"
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    if partitions != [(_SQUASHFS, _PRIMARY)]:
        return "it has other file systems in it than the one of its image"
    return ""
