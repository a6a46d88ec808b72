"""Modules of the portal itself, by the schemes of addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wms.placement.modules import ftp, local_files, s3, sftp, web
from wms.placement.modules.streaming import Reader, Worker, Writer

#: What opens a file, by scheme.
READERS: Final[Mapping[str, Reader]] = {
    "file": local_files.opened,
    **dict.fromkeys(("http", "https", "dav", "davs"), web.opened),
    **dict.fromkeys(("ftp", "ftps"), ftp.opened),
    **dict.fromkeys(("sftp", "scp"), sftp.opened),
    "s3": s3.opened,
}
#: What writes one.
WRITERS: Final[Mapping[str, Writer]] = {
    "file": local_files.write,
    **dict.fromkeys(("http", "https", "dav", "davs"), web.write),
    **dict.fromkeys(("ftp", "ftps"), ftp.write),
    **dict.fromkeys(("sftp", "scp"), sftp.write),
    "s3": s3.write,
}
#: What removes one.
REMOVERS: Final[Mapping[str, Worker]] = {
    "file": local_files.remove,
    **dict.fromkeys(("http", "https", "dav", "davs"), web.remove),
    **dict.fromkeys(("ftp", "ftps"), ftp.remove),
    **dict.fromkeys(("sftp", "scp"), sftp.remove),
    "s3": s3.remove,
}
