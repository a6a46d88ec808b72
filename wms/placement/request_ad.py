"""Parser of a placement request's ad, as Stork has it: addresses, schemes, checks.

Also the pairs of schemes of a request and of each attempt, findings about pairs that nothing
transfers, and places that `file:` addresses name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from matching.ads.ad_cost import check_cost
from matching.ads.ad_formats import parse_ad
from matching.ads.classads import AdError, build_ad, literal_values
from wms.core.errors import Finding, InvalidInput
from wms.jobs.content.paths import checked_path

#: The longest address.
MAX_URL: Final = 2048
MAX_ALTERNATIVES: Final = 20

_TRANSFER = "transfer"
#: Kinds of requests of Stork that are not supported.
_OTHER_TYPES = ("reserve", "release", "stage", "remove", "requestpath")
_SCHEME = re.compile(r"[a-z][a-z0-9+.]{0,30}")
_URL = re.compile(rf"({_SCHEME.pattern}):(\S(?:.*\S)?)", re.IGNORECASE)
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)
_SEMICOLON = re.compile(r";[ \t]*$", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class TransferSpec:
    """A request for a transfer; `alternatives` are further pairs of schemes."""

    source_url: str
    destination_url: str
    arguments: str = ""
    alternatives: tuple[tuple[str, str], ...] = ()
    expected_sha256: str = ""
    expected_bytes: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of schemes in the order in which they are tried, the primary one first."""
        primary = (scheme_of(self.source_url), scheme_of(self.destination_url))
        return [primary, *self.alternatives]


@dataclass(frozen=True, slots=True)
class PairFindings:
    """Findings about pairs of schemes without a module: faults where no other pair is left."""

    faults: Sequence[Finding] = ()
    warnings: Sequence[Finding] = ()


def scheme_of(url: str) -> str:
    """The scheme of an address, in small letters."""
    return url.partition(":")[0].lower()


def with_scheme(url: str, scheme: str) -> str:
    """The address under another scheme; host and path stay."""
    return f"{scheme}:{url.partition(':')[2]}"


def pair_of(spec_pairs: Sequence[tuple[str, str]], attempt_number: int) -> tuple[str, str]:
    """The pair of schemes of an attempt, from 1: each in turn, the primary one first."""
    return spec_pairs[(attempt_number - 1) % len(spec_pairs)]


@dataclass(frozen=True, slots=True)
class FileLocation:
    """Target of a `file:` address: a path in the workspace, or an absolute one of the host."""

    path: str
    is_absolute: bool
    #: It ends with a slash: the file keeps its name below it.
    is_directory: bool = False


def file_location(url: str, *, directory: str) -> FileLocation:
    """Location that a `file:` address names. Raises InvalidInput for one that names none.

    Without a slash after the colon it is relative to the directory of the workspace.
    """
    rest = url.partition(":")[2]
    if rest.startswith("/"):
        parts = urlsplit(f"file:{rest}")
        if parts.netloc not in ("", "localhost"):
            raise InvalidInput.of(f"{url}: a file is on this host, not on {parts.netloc}")
        path = unquote(rest[2 + len(parts.netloc) :] if rest.startswith("//") else rest)
        if not path.startswith("/"):
            raise InvalidInput.of(f"{url} names no path")
        if _CONTROL.search(path) or ".." in path.split("/"):
            raise InvalidInput.of(f"{url}: `..` and control characters are not allowed")
        return FileLocation(posixpath.normpath(path), True, path.endswith("/"))
    path = unquote(rest)
    is_directory = path.endswith("/") or path in (".", "..") or path.endswith(("/.", "/.."))
    joined = posixpath.normpath(posixpath.join(directory, path))
    if joined == "." and is_directory:
        return FileLocation("", False, True)
    return FileLocation(checked_path(joined, field="url"), False, is_directory)


def parse_request(text: str, *, directory: str = "", file: str = "") -> TransferSpec:
    """The request that the ad makes. Raises InvalidInput with every fault."""
    try:
        attributes = parse_ad(_in_brackets(text))
        check_cost(attributes)
        values = literal_values(build_ad(attributes))
    except AdError as error:
        line = error.line or _line_of(text, error.attribute)
        raise InvalidInput.of(error.message, file=file, line=line, field=error.attribute) from None
    reader = _Reader(text, file, directory, {name.lower(): name for name in attributes}, values)
    spec = reader.spec(attributes)
    if reader.findings:
        raise InvalidInput(reader.findings)
    return spec


def check_pairs(
    spec: TransferSpec, text: str, known: Collection[tuple[str, str]], *, file: str = ""
) -> PairFindings:
    """Findings about the pairs of a request that are not `known`, with the lines of its text.

    A request that can never be carried out is at fault; one that has another pair loses attempts.
    """
    unknown = [pair for pair in spec.pairs if pair not in known]
    there_is = ", ".join("-".join(each) for each in sorted(known))
    findings = []
    for pair in dict.fromkeys(unknown):
        name = "src_url" if pair == spec.pairs[0] else "alt_protocols"
        given = next(each for each in spec.attributes if each.lower() == name)
        message = f"no module transfers from {pair[0]} to {pair[1]}; there is: {there_is}"
        findings.append(Finding(message, file, _line_of(text, given), field=name))
    if len(unknown) == len(spec.pairs):
        return PairFindings(faults=findings)
    return PairFindings(warnings=findings)


def _in_brackets(text: str) -> str:
    """The ad in brackets, which may be left out, as in a DAG file."""
    is_bare = not text.lstrip().startswith(("[", "{")) and _SEMICOLON.search(text)
    return f"[{text}\n]" if is_bare else text


def _line_of(text: str, name: str) -> int | None:
    found = re.search(rf"(?<![\w.]){re.escape(name)}\s*=(?!=)", text) if name else None
    return None if found is None else text.count("\n", 0, found.start()) + 1


class _Reader:
    """The attributes of one ad, read one by one; faults are collected."""

    def __init__(
        self,
        text: str,
        file: str,
        directory: str,
        names: Mapping[str, str],
        values: Mapping[str, Any],
    ) -> None:
        self.findings: list[Finding] = []
        self._text, self._file, self._directory = text, file, directory
        self._names, self._values = names, values

    def spec(self, attributes: Mapping[str, str]) -> TransferSpec:
        self._check_type()
        return TransferSpec(
            source_url=self._url("src_url"),
            destination_url=self._url("dest_url"),
            arguments=self._string("arguments", limit=4096),
            alternatives=self._alternatives(),
            expected_sha256=self._checksum(),
            expected_bytes=self._size(),
            attributes=dict(attributes),
        )

    def _fault(self, name: str, message: str) -> None:
        given = self._names.get(name, "")
        line = _line_of(self._text, given) if given else 1 if self._file else None
        self.findings.append(Finding(message, self._file, line, field=name))

    def _string(self, name: str, *, limit: int, is_needed: bool = False) -> str:
        given = self._names.get(name)
        if given is None:
            if is_needed:
                self._fault(name, f"{name} is missing")
            return ""
        value = self._values.get(given)
        if not isinstance(value, str):
            self._fault(name, f"{name} has to be a string")
            return ""
        if len(value) > limit or _CONTROL.search(value):
            self._fault(name, f"{name} is longer than {limit} characters or not on one line")
            return ""
        if is_needed and not value.strip():
            self._fault(name, f"{name} is empty")
        return value.strip()

    def _check_type(self) -> None:
        kind = self._string("dap_type", limit=64, is_needed=True).lower()
        if not kind or kind == _TRANSFER:
            return
        if kind in _OTHER_TYPES:
            self._fault("dap_type", f"nothing here does {kind}; only {_TRANSFER} is done")
        else:
            self._fault("dap_type", f"{kind!r} is no kind of request; write {_TRANSFER}")

    def _url(self, name: str) -> str:
        text = self._string(name, limit=MAX_URL, is_needed=True)
        if not text:
            return ""
        if not _URL.fullmatch(text):
            self._fault(name, f"{name} is no address such as file:data/x or http://host/x: {text}")
            return ""
        if scheme_of(text) == "file":
            self._check_file(name, text)
        return with_scheme(text, scheme_of(text))

    def _check_file(self, name: str, url: str) -> None:
        try:
            place = file_location(url, directory=self._directory)
        except InvalidInput as error:
            self._fault(name, f"{name}: {error.findings[0].message}")
            return
        if name == "src_url" and place.is_directory:
            self._fault(name, f"{name}: {url} is a directory; files are copied one by one")

    def _alternatives(self) -> tuple[tuple[str, str], ...]:
        text = self._string("alt_protocols", limit=1024)
        pairs = []
        for word in text.replace(",", " ").split():
            source, _, destination = word.lower().partition("-")
            if not (_SCHEME.fullmatch(source) and _SCHEME.fullmatch(destination)):
                self._fault("alt_protocols", f"{word!r} is no pair of schemes such as http-file")
                continue
            pairs.append((source, destination))
        if len(pairs) > MAX_ALTERNATIVES:
            self._fault("alt_protocols", f"more than {MAX_ALTERNATIVES} pairs")
        return tuple(pairs)

    def _checksum(self) -> str:
        text = self._string("checksum", limit=128)
        found = _SHA256.fullmatch(text)
        if text and found is None:
            self._fault("checksum", "checksum has to be the SHA-256 of the file, in hexadecimal")
        return found[1].lower() if found else ""

    def _size(self) -> int | None:
        given = self._names.get("size")
        if given is None:
            return None
        value = self._values.get(given)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
            self._fault("size", "size has to be the number of bytes of the file")
            return None
        return value
