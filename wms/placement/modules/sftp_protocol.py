"""SFTP, version 3, as all servers speak it (draft-ietf-secsh-filexfer-02), over a session.

Many requests are under way at once, so that a transfer is as fast as the link and not as its
distance.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from wms.placement.modules.ssh_session import Session

#: What every server takes at once, and so much is under way.
PIECE_BYTES: Final = 32 * 1024
_UNDER_WAY: Final = 64
_MOST_PACKET: Final = 256 * 1024
#: So much is what an answer to a read has beside the piece, or in place of it.
_BESIDES_BYTES: Final = 1024
_READ, _WRITE, _CREATE, _TRUNCATE = 0x01, 0x02, 0x08, 0x10
_HAS_SIZE, _HAS_OWNER, _HAS_MODE, _HAS_TIMES = 0x01, 0x02, 0x04, 0x08
_RENAME_OVER = b"posix-rename@openssh.com"
_SYNC = b"fsync@openssh.com"
_VERSION: Final = 3


class _Kind(IntEnum):
    INIT = 1
    VERSION = 2
    OPEN = 3
    CLOSE = 4
    READ = 5
    WRITE = 6
    FSTAT = 8
    REMOVE = 13
    MKDIR = 14
    STAT = 17
    RENAME = 18
    STATUS = 101
    HANDLE = 102
    DATA = 103
    ATTRS = 105
    EXTENDED = 200


class Code(IntEnum):
    """Codes of answers that matter here."""

    OK = 0
    EOF = 1
    NO_SUCH_FILE = 2


class SftpError(OSError):
    """The server said no."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words or f"SFTP code {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Attributes:
    """Size of a file and the time of its last change; None where the server does not tell."""

    size_bytes: int | None
    changed_at: int | None


class _Answers:
    """Answers to reads that came before their turn: to those alone that were asked for."""

    def __init__(self) -> None:
        #: Bytes that were asked for, by the numbers of requests.
        self.awaited: dict[int, int] = {}
        self.came: dict[int, tuple[int, bytes]] = {}

    def take(self, number: int, kind: int, body: bytes) -> None:
        """Keep an answer. Raises ConnectionAbortedError for one that nobody has asked for."""
        size = self.awaited.pop(number, None)
        if size is None or len(body) > size + _BESIDES_BYTES:
            raise ConnectionAbortedError("the server sends what was not asked for")
        if kind == _Kind.DATA and len(_text(body)[0]) > size:
            raise ConnectionAbortedError("the server sends more than was asked for")
        self.came[number] = kind, body


class Sftp:
    """Requests to a server, each with its answer. All raise SftpError and OSError."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._number = self._unanswered = 0
        self._extensions: set[bytes] = set()
        self._write(_Kind.INIT, struct.pack(">I", _VERSION))
        kind, body = self._packet()
        if kind != _Kind.VERSION or len(body) < 4:
            raise ConnectionAbortedError("the server speaks no SFTP")
        rest = body[4:]
        while rest:
            name, rest = _text(rest)
            _, rest = _text(rest)
            self._extensions.add(name)

    def open_to_read(self, path: bytes) -> bytes:
        """A handle of a file."""
        return self._handle(path, _READ)

    def open_to_write(self, path: bytes) -> bytes:
        """A handle of a file that is empty."""
        return self._handle(path, _WRITE | _CREATE | _TRUNCATE)

    def _handle(self, path: bytes, flags: int) -> bytes:
        body = _packed(path) + struct.pack(">II", flags, 0)
        return _text(self._ask(_Kind.OPEN, body, _Kind.HANDLE))[0]

    def close(self, handle: bytes) -> None:
        """Let go of a file; the server may tell now that it could not write it."""
        self._done(_Kind.CLOSE, _packed(handle))

    def attributes(self, handle: bytes) -> Attributes:
        """Attributes of an open file."""
        return _attributes(self._ask(_Kind.FSTAT, _packed(handle), _Kind.ATTRS))

    def is_there(self, path: bytes) -> bool:
        """Whether there is something under this path."""
        try:
            self._ask(_Kind.STAT, _packed(path), _Kind.ATTRS)
        except SftpError as error:
            if error.code == Code.NO_SUCH_FILE:
                return False
            raise
        return True

    def make_folder(self, path: bytes) -> None:
        """Make a folder."""
        self._done(_Kind.MKDIR, _packed(path) + struct.pack(">I", 0))

    def remove(self, path: bytes) -> None:
        """Remove a file."""
        self._done(_Kind.REMOVE, _packed(path))

    def rename_over(self, old: bytes, new: bytes) -> None:
        """Give a file another name, in place of what has that."""
        if _RENAME_OVER in self._extensions:
            self._done(_Kind.EXTENDED, _packed(_RENAME_OVER) + _packed(old) + _packed(new))
            return
        if self.is_there(new):
            self.remove(new)
        self._done(_Kind.RENAME, _packed(old) + _packed(new))

    def sync(self, handle: bytes) -> None:
        """Have the server write a file to its disk, if it can be asked to."""
        if _SYNC in self._extensions:
            self._done(_Kind.EXTENDED, _packed(_SYNC) + _packed(handle))

    def read(self, handle: bytes, offset: int) -> Iterator[bytes]:
        """The pieces of a file from an offset on, in their order, to its end."""
        asked: deque[tuple[int, int, int]] = deque()
        answers = _Answers()
        ends, next_at = False, offset
        while asked or not ends:
            while not ends and len(asked) < _UNDER_WAY:
                number = self._ask_piece(handle, next_at, PIECE_BYTES, answers)
                asked.append((number, next_at, PIECE_BYTES))
                next_at += PIECE_BYTES
            number, at, size = asked.popleft()
            piece = self._piece(number, answers)
            if piece is None:
                ends = True
            elif len(piece) < size:
                # Less than was asked for is no end: the rest is asked for first.
                at, size = at + len(piece), size - len(piece)
                asked.appendleft((self._ask_piece(handle, at, size, answers), at, size))
                yield piece
            else:
                yield piece

    def _ask_piece(self, handle: bytes, offset: int, size: int, answers: _Answers) -> int:
        number = self._send(_Kind.READ, _packed(handle) + struct.pack(">QI", offset, size))
        answers.awaited[number] = size
        return number

    def _piece(self, number: int, answers: _Answers) -> bytes | None:
        """The piece of this request; None behind the end. Others' answers wait in `answers`."""
        while number not in answers.came:
            answers.take(*self._answer())
        kind, body = answers.came.pop(number)
        if kind == _Kind.DATA:
            return _text(body)[0]
        code, words = _status(kind, body)
        if code == Code.EOF:
            return None
        raise SftpError(code, words)

    def write(self, handle: bytes, pieces: Iterable[bytes]) -> None:
        """Write pieces one behind the other."""
        offset = 0
        for piece in pieces:
            view = memoryview(piece)
            for begin in range(0, len(view), PIECE_BYTES):
                part = view[begin : begin + PIECE_BYTES]
                head = _packed(handle) + struct.pack(">QI", offset, len(part))
                self._send(_Kind.WRITE, head, part)
                offset += len(part)
                self._unanswered += 1
                if self._unanswered >= _UNDER_WAY:
                    self._acknowledge_piece()
        while self._unanswered:
            self._acknowledge_piece()

    def _acknowledge_piece(self) -> None:
        self._unanswered -= 1
        self._acknowledge()

    def settle(self) -> None:
        """Take the answers that are left of a write that was broken off."""
        while self._unanswered:
            self._unanswered -= 1
            self._answer()

    def _acknowledge(self) -> None:
        _, kind, body = self._answer()
        code, words = _status(kind, body)
        if code != Code.OK:
            raise SftpError(code, words)

    def _done(self, kind: _Kind, body: bytes) -> None:
        self._send(kind, body)
        self._acknowledge()

    def _ask(self, kind: _Kind, body: bytes, wanted: _Kind) -> bytes:
        self._send(kind, body)
        _, came, answer = self._answer()
        if came != wanted:
            raise SftpError(*_status(came, answer))
        return answer

    def _send(self, kind: _Kind, body: bytes, data: bytes | memoryview = b"") -> int:
        self._number = (self._number + 1) % 2**32
        self._write(kind, struct.pack(">I", self._number) + body, data)
        return self._number

    def _write(self, kind: _Kind, body: bytes, data: bytes | memoryview = b"") -> None:
        head = struct.pack(">IB", 1 + len(body) + len(data), kind)
        self._session.send(b"".join((head, body, data)))

    def _answer(self) -> tuple[int, int, bytes]:
        kind, body = self._packet()
        if len(body) < 4:
            raise ConnectionAbortedError("an answer of the server is not whole")
        return int.from_bytes(body[:4], "big"), kind, body[4:]

    def _packet(self) -> tuple[int, bytes]:
        size = int.from_bytes(self._session.receive(4), "big")
        if not 1 <= size <= _MOST_PACKET:
            raise ConnectionAbortedError("an answer of the server is not SFTP")
        packet = self._session.receive(size)
        return packet[0], packet[1:]


def _packed(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


def _text(body: bytes) -> tuple[bytes, bytes]:
    """A text at the beginning of an answer, and what is behind it."""
    size = int.from_bytes(body[:4], "big")
    if len(body) < 4 + size:
        raise ConnectionAbortedError("an answer of the server is not whole")
    return body[4 : 4 + size], body[4 + size :]


def _status(kind: int, body: bytes) -> tuple[int, str]:
    if kind != _Kind.STATUS or len(body) < 4:
        raise ConnectionAbortedError("an answer of the server is not what was asked for")
    words = _text(body[4:])[0] if len(body) >= 8 else b""
    return int.from_bytes(body[:4], "big"), words.decode(errors="replace")[:200]


def _attributes(body: bytes) -> Attributes:
    flags, at = int.from_bytes(body[:4], "big"), 4
    size = changed = None
    if flags & _HAS_SIZE:
        size, at = int.from_bytes(body[at : at + 8], "big"), at + 8
    at += 8 if flags & _HAS_OWNER else 0
    at += 4 if flags & _HAS_MODE else 0
    if flags & _HAS_TIMES:
        changed = int.from_bytes(body[at + 4 : at + 8], "big")
    return Attributes(size, changed)
