"""Files of `sftp:` and `scp:` addresses: read from any offset, written under another name first.

Both schemes are SFTP: so does `scp` of OpenSSH itself by now. A host is let in by its key alone,
the owner by a key that is stored for the endpoint.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import unquote_to_bytes

from wms.placement.modules.connections import Endpoint, endpoint_of
from wms.placement.modules.parts import earlier_marks, mark_of
from wms.placement.modules.protocol import FAILED, ModuleFailed, TransferResult, TransferTask
from wms.placement.modules.sftp_protocol import Code, Sftp, SftpError
from wms.placement.modules.ssh_session import session_with
from wms.placement.modules.streaming import Reading, Source

_PORTS: Final = {"sftp": 22, "scp": 22}
SSH_SCHEMES: Final = frozenset(_PORTS)


@contextmanager
def _sftp(task: TransferTask, endpoint: Endpoint) -> Iterator[Sftp]:
    """The server of an endpoint, that has let us in. Raises ModuleFailed for what it refuses."""
    try:
        with session_with(task, endpoint) as session:
            yield Sftp(session)
    except SftpError as error:
        raise ModuleFailed(FAILED, f"{endpoint.host}: {error}"[:500]) from None


def _path(endpoint: Endpoint) -> bytes:
    path = unquote_to_bytes(endpoint.path)
    if any(each < 0x20 or each == 0x7F for each in path):
        raise ModuleFailed(FAILED, "control characters are not allowed in an address")
    return path


@contextmanager
def opened(task: TransferTask) -> Iterator[Source]:
    """The file at the source address. Raises ModuleFailed."""
    endpoint = endpoint_of(task.source_url, _PORTS)
    path = _path(endpoint)
    with _sftp(task, endpoint) as sftp:
        handle = sftp.open_to_read(path)
        found = sftp.attributes(handle)
        version = "" if None in (found.size_bytes, found.changed_at) else str(found.changed_at)

        def begin(offset: int) -> tuple[int, Iterable[bytes]]:
            return offset, sftp.read(handle, offset)

        name = posixpath.basename(path).decode(errors="replace")
        yield Source(begin, name, found.size_bytes, version=version)


def write(reading: Reading) -> TransferResult:
    """Put the file at the destination address. Raises ModuleFailed."""
    endpoint = endpoint_of(reading.task.destination_url, _PORTS)
    path = _path(endpoint)
    if path.endswith(b"/"):
        path += reading.source.name.encode()
    folder, name = posixpath.split(path)
    with _sftp(reading.task, endpoint) as sftp:
        _make_folders(sftp, folder)
        for mark in earlier_marks(reading.task):
            with suppress(SftpError):
                sftp.remove(_part(folder, name, mark))
        temporary = _part(folder, name, mark_of(reading.task))
        try:
            _store(sftp, temporary, endpoint, reading)
            sftp.rename_over(temporary, path)
        except BaseException:
            # If it still answers.
            with suppress(OSError, ModuleFailed):
                sftp.settle()
                sftp.remove(temporary)
            raise
    return TransferResult(reading.size_bytes)


def _part(folder: bytes, name: bytes, mark: str) -> bytes:
    return posixpath.join(folder, b".%s.%s.part" % (name[:150], mark.encode()))


def _store(sftp: Sftp, temporary: bytes, endpoint: Endpoint, reading: Reading) -> None:
    handle = sftp.open_to_write(temporary)
    sftp.write(handle, reading)
    sftp.sync(handle)
    size = sftp.attributes(handle).size_bytes
    sftp.close(handle)
    if size is not None and size != reading.size_bytes:
        raise ModuleFailed(FAILED, f"{endpoint.host} has {size} of {reading.size_bytes} bytes")


def _make_folders(sftp: Sftp, folder: bytes) -> None:
    parts = [part for part in folder.split(b"/") if part]
    for count in range(len(parts), 0, -1):
        if sftp.is_there(b"/" + b"/".join(parts[:count])):
            break
    else:
        count = 0
    for made in range(count + 1, len(parts) + 1):
        # Another transfer may have made it meanwhile; else the next step tells why not.
        with suppress(SftpError):
            sftp.make_folder(b"/" + b"/".join(parts[:made]))


def remove(task: TransferTask) -> TransferResult:
    """Remove the file at the source address; one that is gone is no fault. Raises ModuleFailed."""
    endpoint = endpoint_of(task.source_url, _PORTS)
    with _sftp(task, endpoint) as sftp:
        try:
            sftp.remove(_path(endpoint))
        except SftpError as error:
            if error.code != Code.NO_SUCH_FILE:
                raise
    return TransferResult(None)
