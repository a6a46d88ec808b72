"""Archives are unpacked within bounds, and nothing of them leaves its place."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.negotiation.deadline import Deadline
from portal.shared import archives
from portal.shared.archives import ArchiveTooLarge, unpack
from wms.core.errors import InvalidInput, TooLarge

ENDLESS = Deadline(None, 0)
FILES = {"a.dag": b"JOB A sub/job.sub\n", "sub/job.sub": b"queue\n", "sub/deep/x": b""}


def _tar(files: dict[str, bytes], mode: str = "w:gz") -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream


def _zip(files: dict[str, bytes]) -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream


def _plain_tar(files: dict[str, bytes]) -> io.BytesIO:
    return _tar(files, "w")


def _special(kind: bytes) -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo("door")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    return stream


def _read(stream: io.BytesIO, limit_bytes: int = 10**6) -> dict[str, bytes]:
    unpacked = unpack(stream, name="all.tgz", limit_bytes=limit_bytes, deadline=ENDLESS)
    return {path: content.read() for path, content in unpacked.items()}


@pytest.mark.parametrize("archive", [_tar(FILES), _tar(FILES, "w"), _zip(FILES)])
def test_files_keep_their_directories(archive: io.BytesIO) -> None:
    assert _read(archive) == FILES


@given(st.dictionaries(st.sampled_from(["a", "b/c", "d"]), st.binary(max_size=3000), min_size=1))
def test_every_content_comes_out_as_it_went_in(files: dict[str, bytes]) -> None:
    assert _read(_tar(files)) == _read(_zip(files)) == files


def test_a_content_can_be_read_from_its_middle_and_again() -> None:
    content = unpack(_zip({"x": b"0123456789"}), name="x.zip", limit_bytes=100, deadline=ENDLESS)[
        "x"
    ]

    content.seek(4)
    assert content.read(3) == b"456"
    content.seek(0)
    assert content.read() == b"0123456789"


@pytest.mark.parametrize(
    "name", ["../out", "/etc/cron.d/x", "a/../../b", "a\\b", "x\ny", "\x1b[2J", "n" * 300]
)
@pytest.mark.parametrize("pack", [_tar, _zip])
def test_a_name_that_no_file_here_can_have_is_refused(name: str, pack: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        _read(pack({"before": b"x", name: b"x", "ok": b"y"}))  # type: ignore[operator]

    [finding] = refused.value.findings
    assert (finding.file, finding.member) == ("all.tgz", name[:200])


def _named_in_bytes(pack: Callable[[dict[str, bytes]], io.BytesIO]) -> io.BytesIO:
    """Archive with a member whose name is no UTF-8, where its format says it was."""
    content = pack({"before": b"x", "bad-\u00e9\u00e9": b"y"}).getvalue()
    return io.BytesIO(content.replace("\u00e9\u00e9".encode(), b"\xff\xfe\xe9\xff"))


@pytest.mark.parametrize("pack", [_plain_tar, _zip])
def test_a_name_that_is_no_text_is_refused_and_told_as_one(
    pack: Callable[[dict[str, bytes]], io.BytesIO],
) -> None:
    with pytest.raises(InvalidInput) as refused:
        _read(_named_in_bytes(pack))

    [finding] = refused.value.findings
    assert (finding.file, finding.member) == ("all.tgz", r"bad-\xff\xfe\xe9\xff")
    assert finding.message.isprintable()


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE],
)
def test_what_is_no_plain_file_is_refused(kind: bytes) -> None:
    with pytest.raises(InvalidInput, match="neither a plain") as refused:
        _read(_special(kind))

    assert [each.member for each in refused.value.findings] == ["door"]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
def test_what_is_no_plain_file_of_a_zip_is_refused(kind: int) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        member = zipfile.ZipInfo("door")
        member.external_attr = (kind | 0o777) << 16
        archive.writestr(member, "/etc/passwd")

    with pytest.raises(InvalidInput, match="neither a plain") as refused:
        _read(stream)

    assert [each.member for each in refused.value.findings] == ["door"]


@pytest.mark.parametrize("pack", [_tar, _zip])
def test_a_small_archive_of_much_is_refused_before_it_is_unpacked(pack: object) -> None:
    bomb = pack({"zeros": bytes(5_000_000)})  # type: ignore[operator]
    assert len(bomb.getvalue()) < 20_000

    with pytest.raises(ArchiveTooLarge) as refused:
        _read(bomb, limit_bytes=1_000_000)

    assert (refused.value.archive, refused.value.member) == ("all.tgz", "zeros")


def test_members_are_bounded_in_all_and_the_one_too_many_is_told() -> None:
    with pytest.raises(ArchiveTooLarge) as refused:
        _read(_tar({"a": bytes(600), "b": bytes(600), "c": b""}), limit_bytes=1000)

    assert refused.value.member == "b"


def test_a_header_that_claims_to_be_huge_is_refused() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("x")
        member.pax_headers = {"comment": "c" * 500_000}
        archive.addfile(member)

    with pytest.raises(ArchiveTooLarge) as refused:
        _read(io.BytesIO(gzip.compress(stream.getvalue())))

    assert refused.value.member == ""


@pytest.mark.parametrize("pack", [_tar, _zip])
def test_names_that_are_there_twice_are_refused(pack: object) -> None:
    stream = pack({"a": b"1", "./a": b"2", "b/../a": b"1"})  # type: ignore[operator]

    with pytest.raises(InvalidInput, match="is there twice") as refused:
        _read(stream)

    assert [each.member for each in refused.value.findings] == ["./a", "b/../a"]


def test_a_member_whose_content_is_broken_is_told() -> None:
    content = _zip({"before": b"x", "broken": bytes(1000)}).getvalue()
    place = content.rindex(b"broken", 0, content.index(b"PK\x01\x02")) + len(b"broken")

    with pytest.raises(InvalidInput) as refused:
        _read(io.BytesIO(content[:place] + b"\xff" + content[place + 1 :]))

    [finding] = refused.value.findings
    assert (finding.field, finding.member) == ("archive", "broken")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 broken", b"\x1f\x8b broken"])
def test_what_is_no_archive_says_so(content: bytes) -> None:
    with pytest.raises(InvalidInput, match="no zip"):
        _read(io.BytesIO(content))


def test_folders_are_passed_over() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        folder = tarfile.TarInfo("sub")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)

    assert _read(stream) == {}


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_method_that_unpacks_in_one_piece_is_refused(method: int) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("a", b"0" * 1000)

    with pytest.raises(InvalidInput, match="deflate") as refused:
        unpack(stream, name="a.zip", limit_bytes=10**6, deadline=ENDLESS)

    assert [each.member for each in refused.value.findings] == ["a"]


def test_members_at_fault_count_as_well() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for number in range(3):
            member = tarfile.TarInfo(f"../{number}")
            member.size = 400_000
            archive.addfile(member, io.BytesIO(bytes(member.size)))

    with pytest.raises(TooLarge):
        unpack(stream, name="a.tar", limit_bytes=10**6, deadline=ENDLESS)


def _packed(files: dict[str, bytes], part_bytes: int) -> bytes:
    """A tar archive, packed into a file of gzip for each so many bytes of it."""
    plain = _tar(files, "w").getvalue()
    starts = range(0, len(plain), part_bytes)
    return b"".join(gzip.compress(plain[start : start + part_bytes], 1) for start in starts)


@given(
    st.dictionaries(st.sampled_from(["a", "b/c"]), st.binary(max_size=3000), min_size=1),
    st.integers(100, 9000),
    st.integers(0, 20_000),
)
def test_an_archive_may_be_packed_in_parts_and_filled_up_by_zeros(
    files: dict[str, bytes], part_bytes: int, zeros: int
) -> None:
    assert _read(io.BytesIO(_packed(files, part_bytes) + bytes(zeros))) == files


def test_an_archive_of_very_many_parts_is_refused_at_the_last_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = _packed({"a": b"x"}, 100)
    parts = packed.count(gzip.compress(bytes(100), 1)[:10])
    assert parts > 50

    monkeypatch.setattr(archives, "_MAX_PACKED_PARTS", parts)
    assert _read(io.BytesIO(packed)) == {"a": b"x"}
    monkeypatch.setattr(archives, "_MAX_PACKED_PARTS", parts - 90)
    with pytest.raises(InvalidInput, match=f"packed in more than {parts - 90} parts"):
        _read(io.BytesIO(packed))


def test_empty_parts_are_counted_too() -> None:
    packed = gzip.compress(b"") * 10_001

    with pytest.raises(InvalidInput, match="10000 parts"):
        _read(io.BytesIO(packed))


@pytest.mark.parametrize("size_bytes", [3, 2000, 7000])
def test_an_archive_that_ends_within_a_part_is_refused(size_bytes: int) -> None:
    packed = _packed({"a": Random(1).randbytes(9000)}, 4000)

    with pytest.raises(InvalidInput, match="gzip"):
        _read(io.BytesIO(packed[:size_bytes]))


@pytest.mark.parametrize("archive", [_tar(FILES), _tar(FILES, "w"), _zip(FILES)])
def test_an_archive_is_unpacked_no_longer_than_the_time_allows(archive: io.BytesIO) -> None:
    seconds = iter(range(1000))

    with pytest.raises(TooLarge, match="longer than 2 s"):
        unpack(
            archive, name="x", limit_bytes=10**6,
            deadline=Deadline(lambda: float(next(seconds)), 2),
        )  # fmt: skip
