"""Parser of placement requests, as Stork has them: one ClassAd each, one or many in a text.

Also the pairs of schemes of a request and of each attempt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from matching.ads.ad_cost import check_cost
from matching.ads.ad_formats import parse_ad, split_ads
from matching.ads.classads import AdError, build_ad, literal_values
from wms.core.errors import Finding, InvalidInput
from wms.placement.addresses import (
    CONTROL,
    MAX_URL,
    SCHEME,
    checked_url,
    file_location,
    is_host,
    scheme_of,
)
from wms.placement.amounts import MAX_BYTES, bytes_of, seconds_of
from wms.placement.catalogue.names import is_logical
from wms.placement.states import RequestKind

MAX_ALTERNATIVES: Final = 20
#: So many requests a text may have, and so many faults are told of it.
MAX_REQUESTS: Final = 10_000
MAX_FAULTS: Final = 200
#: What a value stands for that only the site of the DAG will tell: a name without a value.
NOT_YET: Final = "KnownAtTheSite"

_KINDS: Final = {"reserve": RequestKind.ALLOCATE, **{kind.value: kind for kind in RequestKind}}
#: Names that mean the same, the one that is told in faults first.
_NAMES: Final = {"size": ("size", "reserve_size"), "allocation_id": ("allocation_id", "reserve_id")}
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)
_MD5 = re.compile(r"(?:md5:)?([0-9a-f]{32})", re.IGNORECASE)
_ADLER32 = re.compile(r"adler32:([0-9a-f]{8})", re.IGNORECASE)
_SEMICOLON = re.compile(r";[ \t]*$", re.MULTILINE)
_ALLOCATION = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


@dataclass(frozen=True, slots=True)
class Checksums:
    """Checksums that a file has to have, in small hexadecimal; empty for any."""

    sha256: str = ""
    md5: str = ""
    adler32: str = ""


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """A request; `alternatives` are further pairs of schemes of a transfer.

    `size_bytes` are those of the file, or of the space that is allocated for `duration_s`.
    `line` is where its ad, whose `text` this is, begins.
    """

    kind: RequestKind = RequestKind.TRANSFER
    source_url: str = ""
    destination_url: str = ""
    arguments: str = ""
    alternatives: tuple[tuple[str, str], ...] = ()
    checksums: Checksums = Checksums()
    size_bytes: int | None = None
    host: str = ""
    #: Names of storages: where a logical name is written, and of which it is removed.
    source_storage: str = ""
    destination_storage: str = ""
    #: `Requirements` or `Rank` choose the storage where a logical name is written.
    is_choosing: bool = False
    allocation: str = ""
    duration_s: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    line: int = 1
    text: str = field(default="", repr=False)
    #: Attributes whose values are not known before the DAG has a site.
    unknown: frozenset[str] = frozenset()

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of schemes in the order in which they are tried, the primary one first."""
        primary = (scheme_of(self.source_url), scheme_of(self.destination_url))
        return [primary, *self.alternatives]


def parse_requests(text: str, *, directory: str = "", file: str = "") -> list[RequestSpec]:
    """The requests of a text, one at least. Raises InvalidInput with every fault and its line."""
    try:
        ads = split_ads(text)
    except AdError as error:
        raise InvalidInput.of(error.message, file=file, line=error.line) from None
    if len(ads) > MAX_REQUESTS:
        raise InvalidInput.of(f"more than {MAX_REQUESTS} requests in one text", file=file)
    specs: list[RequestSpec] = []
    faults: list[Finding] = []
    for line, ad in ads:
        try:
            spec = _parse(ad, directory=directory, file=file)
            specs.append(replace(spec, line=line, text=ad))
        except InvalidInput as error:
            faults += [_moved(each, line - 1) for each in error.findings]
        if len(faults) >= MAX_FAULTS:
            break
    if faults:
        raise InvalidInput(faults)
    return specs


def _moved(finding: Finding, lines: int) -> Finding:
    return finding if finding.line is None else replace(finding, line=finding.line + lines)


def _parse(text: str, *, directory: str, file: str) -> RequestSpec:
    try:
        attributes = parse_ad(_in_brackets(text))
        check_cost(attributes)
        values = literal_values(build_ad(attributes))
    except AdError as error:
        line = error.line or line_of(text, error.attribute)
        raise InvalidInput.of(error.message, file=file, line=line, field=error.attribute) from None
    reader = _Reader(text, file, directory, attributes, values)
    spec = reader.spec()
    if reader.findings:
        raise InvalidInput(reader.findings)
    return spec


def _in_brackets(text: str) -> str:
    """The ad in brackets, which may be left out, as in a DAG file."""
    is_bare = not text.lstrip().startswith(("[", "{")) and _SEMICOLON.search(text)
    return f"[{text}\n]" if is_bare else text


def line_of(text: str, name: str) -> int | None:
    """The line of a text at which an attribute is given, from 1; None if it is not."""
    found = re.search(rf"(?i)(?<![\w.]){re.escape(name)}\s*=(?!=)", text) if name else None
    return None if found is None else text.count("\n", 0, found.start()) + 1


class _Reader:
    """The attributes of one ad, read one by one; faults are collected."""

    def __init__(
        self,
        text: str,
        file: str,
        directory: str,
        attributes: Mapping[str, str],
        values: Mapping[str, Any],
    ) -> None:
        self.findings: list[Finding] = []
        self._text, self._file, self._directory = text, file, directory
        self._attributes, self._values = attributes, values
        self._names = {name.lower(): name for name in attributes}
        self._unknown: set[str] = set()
        self._has_unknown = any(NOT_YET in each for each in attributes.values())

    def spec(self) -> RequestSpec:
        return replace(
            _READERS[self._kind()](self),
            arguments=self._string("arguments", limit=4096),
            attributes=dict(self._attributes),
            unknown=frozenset(self._unknown),
        )

    def transfer(self) -> RequestSpec:
        return RequestSpec(
            source_url=self._url("src_url", is_file=True),
            destination_url=self._url("dest_url"),
            destination_storage=self._destination_storage(),
            is_choosing=self._is_choosing(),
            alternatives=self._alternatives(),
            checksums=self._checksums(),
            size_bytes=self._size(),
            allocation=self._allocation(is_needed=False),
        )

    def allocate(self) -> RequestSpec:
        return RequestSpec(
            kind=RequestKind.ALLOCATE,
            host=self._host(),
            allocation=self._allocation(),
            size_bytes=self._size(is_needed=True),
            duration_s=self._duration(),
        )

    def release(self) -> RequestSpec:
        return RequestSpec(
            kind=RequestKind.RELEASE, host=self._host(), allocation=self._allocation()
        )

    def stage(self) -> RequestSpec:
        return RequestSpec(
            kind=RequestKind.STAGE,
            source_url=self._url("src_url", is_file=True),
            checksums=self._checksums(),
            size_bytes=self._size(),
        )

    def remove(self) -> RequestSpec:
        return RequestSpec(
            kind=RequestKind.REMOVE,
            source_url=self._url("src_url", is_file=True),
            source_storage=self._storage("src_storage", "src_url", is_needed=False),
        )

    def _given(self, name: str) -> str | None:
        """The name under which an attribute is given; None where it is not."""
        names = _NAMES.get(name, (name,))
        return next((self._names[each] for each in names if each in self._names), None)

    def _fault(self, name: str, message: str) -> None:
        given = self._given(name) or ""
        line = line_of(self._text, given) if given else 1
        self.findings.append(Finding(message, self._file, line, field=given or name))

    def _value(self, name: str, *, is_needed: bool = False) -> object:
        """The value of an attribute; None without one, or with one that only the site tells."""
        given = self._given(name)
        if given is None:
            if is_needed:
                self._fault(name, f"{name} is missing")
            return None
        value = self._values.get(given)
        if (value is None and self._has_unknown) or NOT_YET in str(value):
            self._unknown.add(name)
            return None
        if value is None:
            self._fault(name, f"{given} has no value")
        return value

    def _string(self, name: str, *, limit: int, is_needed: bool = False) -> str:
        value = self._value(name, is_needed=is_needed)
        if value is None:
            return ""
        if not isinstance(value, str):
            self._fault(name, f"{name} has to be a string")
            return ""
        if len(value) > limit or CONTROL.search(value):
            self._fault(name, f"{name} is longer than {limit} characters or not on one line")
            return ""
        if is_needed and not value.strip():
            self._fault(name, f"{name} is empty")
        return value.strip()

    def _kind(self) -> RequestKind:
        text = self._string("dap_type", limit=64, is_needed=True).lower()
        kind = _KINDS.get(text)
        if text and kind is None:
            known = ", ".join(RequestKind.values)
            self._fault("dap_type", f"{text!r} is no kind of request; there are {known}")
        if "dap_type" in self._unknown:
            self._fault("dap_type", "dap_type has to be known when the DAG is submitted")
        # What else is wrong is told as of a transfer.
        return kind or RequestKind.TRANSFER

    def _url(self, name: str, *, is_file: bool = False) -> str:
        text = self._string(name, limit=MAX_URL, is_needed=True)
        if not text:
            return ""
        try:
            url = checked_url(text)
            place = None
            if scheme_of(url) == "file":
                place = file_location(url, directory=self._directory)
        except InvalidInput as error:
            self._fault(name, f"{name}: {error.findings[0].message}")
            return ""
        if is_file and place is not None and place.is_directory:
            self._fault(name, f"{name}: {url} is a directory; files are named one by one")
        return url

    def _storage(self, name: str, url_name: str, *, is_needed: bool = True) -> str:
        """The storage of a logical name, by its own name."""
        url = self._value(url_name)
        if url_name in self._unknown:
            is_needed = False
        elif not (isinstance(url, str) and is_logical(url.strip())):
            if self._given(name) is not None:
                self._fault(name, f"{name} is of a logical name, lfn:/..., in {url_name}")
            return ""
        if not is_needed and self._given(name) is None:
            return ""
        return self._string(name, limit=64, is_needed=is_needed)

    def _is_choosing(self) -> bool:
        url = self._values.get(self._names.get("dest_url", ""))
        is_named = isinstance(url, str) and is_logical(url.strip())
        return is_named and not self._names.keys().isdisjoint({"requirements", "rank"})

    def _destination_storage(self) -> str:
        if not self._is_choosing():
            return self._storage("dest_storage", "dest_url")
        if self._given("dest_storage") is not None:
            self._fault("dest_storage", "dest_storage, or Requirements and Rank: not both")
        return ""

    def _alternatives(self) -> tuple[tuple[str, str], ...]:
        text = self._string("alt_protocols", limit=1024)
        pairs = []
        for word in text.replace(",", " ").split():
            source, _, destination = word.lower().partition("-")
            if not (SCHEME.fullmatch(source) and SCHEME.fullmatch(destination)):
                self._fault("alt_protocols", f"{word!r} is no pair of schemes such as http-file")
                continue
            pairs.append((source, destination))
        if len(pairs) > MAX_ALTERNATIVES:
            self._fault("alt_protocols", f"more than {MAX_ALTERNATIVES} pairs")
        if pairs and any(is_logical(str(self._values.get(name, ""))) for name in self._urls()):
            self._fault(
                "alt_protocols", "a logical name has its replicas and endpoints as alternatives"
            )
        return tuple(pairs)

    def _urls(self) -> list[str]:
        return [self._names[name] for name in ("src_url", "dest_url") if name in self._names]

    def _checksums(self) -> Checksums:
        found = {"sha256": "", "md5": "", "adler32": ""}
        patterns = (("sha256", _SHA256), ("md5", _MD5), ("adler32", _ADLER32))
        for word in self._string("checksum", limit=256).replace(",", " ").split():
            made = [(kind, match) for kind, p in patterns if (match := p.fullmatch(word))]
            if not made or found[made[0][0]]:
                self._fault(
                    "checksum",
                    "checksum has to be the SHA-256 or MD5 of the file, or adler32:..., each once "
                    "and in hexadecimal",
                )
                return Checksums()
            found[made[0][0]] = made[0][1][1].lower()
        return Checksums(**found)

    def _size(self, *, is_needed: bool = False) -> int | None:
        value = self._value("size", is_needed=is_needed)
        if value is None:
            return None
        size: int | None = None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_BYTES:
            size = value
        elif isinstance(value, str):
            try:
                size = bytes_of(value)
            except ValueError as error:
                self._fault("size", f"size: {error}")
                return None
        if size is None or (is_needed and not size):
            self._fault("size", "size has to be a number of bytes, or a text such as 200MB")
            return None
        return size

    def _duration(self) -> int | None:
        text = self._string("duration", limit=64, is_needed=True)
        try:
            duration_s = seconds_of(text) if text else None
        except ValueError as error:
            self._fault("duration", f"duration: {error}")
            return None
        if duration_s == 0:
            self._fault("duration", "duration has to be longer")
        return duration_s

    def _host(self) -> str:
        text = self._string("dest_host", limit=255, is_needed=True).lower()
        if text and not is_host(text):
            self._fault("dest_host", f"dest_host is no name of a host: {text}")
        return text

    def _allocation(self, *, is_needed: bool = True) -> str:
        value = self._value("allocation_id", is_needed=is_needed)
        if value is None:
            return ""
        text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
        if not _ALLOCATION.fullmatch(text):
            self._fault(
                "allocation_id",
                "allocation_id has to be a number or a name of at most 64 letters, digits, "
                "`_`, `.`, `:` and `-`",
            )
        return text


_READERS: Final = {
    RequestKind.TRANSFER: _Reader.transfer,
    RequestKind.ALLOCATE: _Reader.allocate,
    RequestKind.RELEASE: _Reader.release,
    RequestKind.STAGE: _Reader.stage,
    RequestKind.REMOVE: _Reader.remove,
}
