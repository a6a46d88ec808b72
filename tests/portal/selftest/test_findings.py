"""Each check of the self-test, one by one, with values instead of a host."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from portal.selftest import accounts, address, contents, fences, pythons, servers
from portal.selftest.fences import FencedQueue
from portal.selftest.findings import Code, Finding, Level, has_errors, ok, troubles, warning
from portal.selftest.servers import Broker
from tests.s3.server import S3Server
from wms.core.conf import conf
from wms.core.storage.folder import FolderStore
from wms.core.storage.s3_requests import Bucket
from wms.core.storage.s3_store import S3Store

TODAY = date(2026, 6, 1)


def found(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    told = list(findings)
    # Whatever is not well says why it matters and what to do.
    assert all(each.why and each.todo for each in told if each.level != Level.OK)
    return [(each.code.value, each.level.value) for each in told]


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 11, 2), (3, 11, 4)])
def test_a_python_that_matches_possessive_repeats_wrongly_is_told(
    version: tuple[int, int, int],
) -> None:
    assert found(pythons.faults_of(version, TODAY)) == [("python-possessive-repeats", "warning")]


@pytest.mark.parametrize("version", [(3, 11, 5), (3, 12, 0), (3, 13, 1), (3, 15, 0)])
def test_a_python_without_known_faults_is_well(version: tuple[int, int, int]) -> None:
    assert found(pythons.faults_of(version, TODAY)) == [("python", "ok")]


def test_this_python_matches_as_the_table_says() -> None:
    """The trials of gh-100061 and gh-106052."""
    is_wrong = any(
        re.match(pattern, text).span() != (0, end)  # type: ignore[union-attr]
        for pattern, text, end in (("(?:(?!C).)++", "ABC", 2), ("(?:ab?c){1,3}+", "aca", 2))
    )

    release = (sys.version_info[0], sys.version_info[1], sys.version_info[2])
    told = [code for code, _ in found(pythons.faults_of(release, TODAY))]
    assert (Code.PYTHON_REPEATS in told) is is_wrong


def test_a_python_that_nobody_mends_any_more_is_told() -> None:
    told = found(pythons.faults_of((3, 11, 9), date(2027, 11, 1)))

    assert told == [("python-unmaintained", "warning")]


@pytest.mark.parametrize(
    ("url", "far", "knows", "expected"),
    [
        ("http://127.0.0.1:8000", [], True, ("address", "ok")),
        ("http://127.0.0.1:8000", ["T2/slurm"], True, ("address-is-loopback", "error")),
        ("https://localhost", ["T2/slurm"], True, ("address-is-loopback", "error")),
        ("http://[::1]:8000", ["T2/slurm"], True, ("address-is-loopback", "error")),
        ("http://0.0.0.0:8000", ["T2/slurm"], True, ("address-is-loopback", "error")),
        ("https://portal.example.org", ["T2/slurm"], True, ("address", "ok")),
        ("https://portal.example.org", [], False, ("address-does-not-resolve", "error")),
    ],
)
def test_an_address_that_worker_nodes_cannot_call_is_told(
    url: str, far: list[str], knows: bool, expected: tuple[str, str]
) -> None:
    assert found(address.reachable(url, far, lambda host: knows)) == [expected]


def test_names_are_asked_of_the_host() -> None:
    assert address.resolves("localhost")
    assert not address.resolves("no-such-host.invalid")


PUBLIC = "https://portal.example.org"


@pytest.mark.parametrize(
    ("url", "listen", "allowed", "behind_proxy", "expected"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:8000", ["127.0.0.1"], False, []),
        ("http://[::1]:8000", "", ["[::1]"], False, []),
        (PUBLIC, "127.0.0.1:8000", ["portal.example.org"], True, []),
        (PUBLIC, "", ["localhost"], True, ["address-not-allowed"]),
        (PUBLIC, "", ["*"], True, ["any-host-allowed"]),
        (PUBLIC, "", [".example.org"], False, ["proxy-not-told"]),
        ("http://p.example.org", "", [".example.org"], False, ["no-tls"]),
        ("http://p.example.org", "", [".example.org"], True, ["no-tls"]),
        (
            "http://p.example.org", "127.0.0.1:8000", [".example.org"], False,
            ["no-tls", "address-not-listened-to"],
        ),
        (PUBLIC, "0.0.0.0:8000", [".example.org"], False, ["proxy-not-told"]),
        # All of a host, its other addresses included.
        ("http://p.example.org", "0.0.0.0:8000", [".example.org"], False, ["no-tls"]),
    ],
)  # fmt: skip
def test_a_public_address_that_is_not_served_well_is_told(
    url: str, listen: str, allowed: list[str], behind_proxy: bool, expected: list[str]
) -> None:
    told = found(address.served(url, listen, allowed, behind_proxy=behind_proxy))

    assert [code for code, _ in told] == expected


def queue(fence: str, **changes: bool) -> FencedQueue:
    facts = {"is_settled": True, "is_local": True, "works_there": False} | changes
    return FencedQueue("Here/local", fence, **facts)


@pytest.mark.parametrize(
    ("queues", "trouble", "expected"),
    [
        ([], "is not installed", [("payloads-fence", "ok")]),
        ([queue("bwrap")], "", [("payloads-fence", "ok")]),
        ([queue("")], "", [("payloads-fence", "ok")]),
        ([queue("")], "is not installed", [("payloads-unfenced", "warning")]),
        ([queue("none")], "is not installed", [("payloads-unfenced", "warning")]),
        ([queue("none")], "", [("payloads-unfenced", "warning")]),
        ([queue("bwrap")], "is not installed", [("payloads-not-run", "error")]),
        (
            [queue("none", is_local=False, works_there=True)], "is not installed",
            [("payloads-fence", "ok"), ("fence-unused", "warning")],
        ),
        # A person has chosen that.
        (
            [queue("none", is_local=False, works_there=True, is_settled=False)], "",
            [("payloads-fence", "ok")],
        ),
    ],
)  # fmt: skip
def test_payloads_without_a_fence_are_told(
    queues: list[FencedQueue], trouble: str, expected: list[tuple[str, str]]
) -> None:
    assert found(fences.payloads(queues, trouble)) == expected


@pytest.mark.parametrize(
    ("name", "trouble", "allows_none", "expected"),
    [
        ("bwrap", "", False, [("scripts-fence", "ok")]),
        ("", "bwrap: not installed", False, [("scripts-not-run", "error")]),
        ("none", "", True, [("scripts-unfenced", "warning")]),
        ("bwrap", "", True, [("scripts-fence", "ok"), ("scripts-unfenced", "warning")]),
    ],
)
def test_scripts_without_a_fence_are_told(
    name: str, trouble: str, allows_none: bool, expected: list[tuple[str, str]]
) -> None:
    assert found(fences.scripts(name, trouble, is_unfenced_allowed=allows_none)) == expected


@pytest.mark.parametrize(
    ("version", "settings", "expected"),
    [
        (150004, {"fsync": "on"}, [("database", "ok")]),
        (180000, {"synchronous_commit": "remote_write"}, [("database", "ok")]),
        (140011, {}, [("database-too-old", "error")]),
        (150004, {"fsync": "off"}, [("database-may-lose", "error")]),
    ],
)
def test_a_database_that_is_too_old_or_forgets_is_told(
    version: int, settings: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    assert found(servers.database(version, settings)) == expected


@pytest.mark.parametrize(
    ("difference_s", "round_trip_s", "expected"),
    [
        (0.1, 0.01, ("clock", "ok")),
        (-2.5, 0.01, ("clock-differs", "warning")),
        (40.0, 0.01, ("clock-differs", "warning")),
        # A busy host took that long to ask.
        (3.0, 6.0, ("clock", "ok")),
    ],
)
def test_a_clock_that_differs_is_told(
    difference_s: float, round_trip_s: float, expected: tuple[str, str]
) -> None:
    assert found(servers.clock(difference_s, round_trip_s)) == [expected]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (Broker("Valkey", "9.1.2"), ["broker"]),
        (Broker("Redis", "6.0.16"), ["broker-too-old"]),
        (Broker("Redis", "7.2", may_ask=True, policy="volatile-lru"), ["broker", "broker-account"]),
        (
            Broker("Redis", "7.2", may_ask=True, policy="noeviction", writes=True),
            ["broker", "broker-account", "broker-policy", "broker-writes"],
        ),
    ],
)
def test_a_broker_that_is_too_old_or_set_up_otherwise_is_told(
    told: Broker, expected: list[str]
) -> None:
    assert [code for code, _ in found(servers.broker(told))] == expected


@pytest.mark.parametrize(
    ("free_bytes", "expected"),
    [
        (100 * 2**30, ("disk", "ok")),
        (2 * 2**30, ("disk-small", "warning")),
        (2**20, ("disk-full", "error")),
    ],
)
def test_little_room_on_the_disk_is_told(free_bytes: int, expected: tuple[str, str]) -> None:
    assert found(servers.disk("/var/pilotage", free_bytes)) == [expected]


@pytest.mark.parametrize(
    ("admins", "operators", "expected"),
    [
        (1, 1, ("administrator", "ok")),
        (0, 2, ("no-administrator", "warning")),
        (0, 0, ("no-administrator", "error")),
    ],
)
def test_that_nobody_can_configure_is_told(
    admins: int, operators: int, expected: tuple[str, str]
) -> None:
    assert found(accounts.administrators(admins, operators)) == [expected]


def test_errors_are_told_before_warnings_and_what_is_well_is_no_trouble() -> None:
    slight = warning(Code.DISK_SMALL, "what", "why", "todo")
    bad = Finding(Code.DISK_FULL, Level.ERROR, "what", "why", "todo")

    assert troubles([ok(Code.CLOCK, "well"), slight, bad]) == [bad, slight]
    assert has_errors([slight, bad])
    assert not has_errors([slight])


def test_a_store_that_keeps_contents_is_well_and_nothing_stays_there(tmp_path: Path) -> None:
    at = replace(conf(), blobs_dir=tmp_path)

    assert found(contents.usable(lambda: FolderStore(tmp_path), at)) == [("contents", "ok")]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_store_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "self-test").write_text("no folder")

    told = contents.usable(lambda: FolderStore(tmp_path), replace(conf(), blobs_dir=tmp_path))

    assert found(told) == [("contents-not-kept", "error")]


@pytest.mark.process
@pytest.mark.parametrize(
    ("changed", "code"), [({}, "contents"), ({"secret": "wrong"}, "contents-not-kept")]
)
def test_a_bucket_is_tried_with_the_key_of_the_settings(
    s3: S3Server, tmp_path: Path, changed: dict[str, str], code: str
) -> None:
    at = s3.bucket_conf("tried", **changed)
    store = S3Store(Bucket(at), tmp_path)

    with closing(store):
        [(told, _)] = found(contents.usable(lambda: store, replace(conf(), bucket=at)))

    assert told == code
