"""Placements that name what none may are refused at submission, by the name of the attribute.

By the API as a request of no DAG, and as the DATA node of a DAG, in the same words; then nothing is
stored. What names and redirects lead to is seen when a connection is made.
"""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.portal.api.submissions import URL as DAGS
from tests.portal.api.submissions import dag_form, findings_in, is_nothing_stored
from wms.core.actors import Actor
from wms.placement.models import PlacementRequest
from wms.placement.storages.services import StorageSpec, create_storage

URL = "/api/v1/placement-requests/"
PUBLIC = "http://storage.example.org/x"


def stage(url: str) -> str:
    return f'[ dap_type = "stage";\n src_url = "{url}" ]'


def transfer(source: str = PUBLIC, destination: str = PUBLIC, more: str = "") -> str:
    return f'[ dap_type = "transfer"; src_url = "{source}"; dest_url = "{destination}";\n {more} ]'


def allocate(more: str) -> str:
    return f'[ dap_type = "allocate"; dest_host = "tape"; allocation_id = 1;\n {more} ]'


#: Words that say what is wrong, the text, and the attribute that the answer names.
BAD = {
    # Schemes and modules.
    "unknown scheme": (stage("gopher://storage.example.org/x"), "src_url"),
    "unknown scheme of the destination": (transfer(destination="srm://h.example.org/x"), "src_url"),
    "unknown alternative": (transfer(more='alt_protocols = "http"'), "alt_protocols"),
    "unknown kind": (transfer().replace("transfer", "link"), "dap_type"),
    # Addresses that are none.
    "no address": (stage("storage.example.org/x"), "src_url"),
    "empty address": (stage(""), "src_url"),
    "no host": (stage("http:///x"), "src_url"),
    "port that is none": (stage("http://storage.example.org:99999/x"), "src_url"),
    "half an address of IPv6": (stage("http://[::1/x"), "src_url"),
    "password": (stage("http://alice:secret@storage.example.org/x"), "src_url"),
    "letters that are not ASCII": (stage("http://storage.example.org/\u00e4"), "src_url"),
    "too long": (stage(f"{PUBLIC}{'x' * 2048}"), "src_url"),
    "no text": ('[ dap_type = "stage"; src_url = 7 ]', "src_url"),
    "malformed destination": (transfer(destination="http://:80/x"), "dest_url"),
    # Control characters, written as they are and in other ways.
    "control character": (stage("http://storage.example.org/a\\nHost: b"), "src_url"),
    "encoded line": (stage("http://storage.example.org/%0d%0aHost:%20b"), "src_url"),
    "encoded null": (transfer(destination="file:///pool/a%00b"), "dest_url"),
    "delete": (stage("ftp://storage.example.org/%7f"), "src_url"),
    "control character for a module": (transfer(more='arguments = "a\\nb"'), "arguments"),
    # Files of this host.
    "path outside the roots": (transfer(destination="file:///etc/passwd"), "dest_url"),
    "path that leads out": (transfer("file:///pool/../etc/passwd"), "src_url"),
    "encoded path that leads out": (transfer("file:///pool/%2e%2e/etc/passwd"), "src_url"),
    "neighbour of a root": (transfer(destination="file:///pools/x"), "dest_url"),
    "file of another host": (stage("file://storage.example.org/pool/x"), "src_url"),
    "folder": (stage("file:///pool/"), "src_url"),
    # Addresses that only the portal can reach.
    "loopback": (stage("http://127.0.0.1/x"), "src_url"),
    "private": (transfer(destination="ftp://10.1.2.3/x"), "dest_url"),
    "link-local, metadata": (stage("http://169.254.169.254/latest"), "src_url"),
    "link-local of IPv6": (stage("http://[fe80::1]/x"), "src_url"),
    "unique local": (stage("https://[fd00::1]/x"), "src_url"),
    "IPv4 in IPv6": (stage("http://[::ffff:192.168.1.1]/x"), "src_url"),
    "number for an address": (stage("http://2130706433/x"), "src_url"),
    "short loopback": (stage("http://127.1/x"), "src_url"),
    "hexadecimal loopback": (stage("http://0x7f.0.0.1/x"), "src_url"),
    "octal loopback": (stage("http://0177.0.0.1/x"), "src_url"),
    "unspecified": (stage("http://0.0.0.0/x"), "src_url"),
    "host of SSH without keys": (stage("sftp://storage.example.org/x"), "src_url"),
    # Space.
    "lease of a thousand years": (allocate('size = 1; duration = "365000 days"'), "duration"),
    "lease that is no time": (allocate('size = 1; duration = "soon"'), "duration"),
    "lease of nothing": (allocate('size = 1; duration = "0 s"'), "duration"),
    "space of less than nothing": (allocate('size = -1; duration = "1 h"'), "size"),
    "space without end": (allocate('size = "9999999999 PB"; duration = "1 h"'), "size"),
    "storage that is not there": (
        '[ dap_type = "allocate"; dest_host = "moon"; allocation_id = 1; size = 1; '
        'duration = "1 h" ]',
        "dest_host",
    ),
    "allocation of somebody else": (transfer(more='allocation_id = "bobs"'), "allocation_id"),
    "allocation that is no name": (transfer(more='allocation_id = "a b"'), "allocation_id"),
    "release of what is somebody else's": (
        '[ dap_type = "release"; dest_host = "tape"; allocation_id = "bobs" ]',
        "allocation_id",
    ),
    "checksum that is none": (transfer(more='checksum = "abc"'), "checksum"),
    "logical name without a storage": (transfer(destination="lfn:/a/b"), "dest_storage"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _places(settings: Any, people: Any) -> None:
    """A folder that is listed, a storage with space, and an allocation of Bob's."""
    placement = settings.PILOTAGE["PLACEMENT"] | {"ROOTS": ["/pool"]}
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": placement}
    create_storage(
        StorageSpec("tape", endpoints=("file:///pool",), space_bytes=10**9),
        actor=Actor.person(people.olga),
    )


@pytest.mark.parametrize(("text", "field"), BAD.values(), ids=BAD)
def test_it_is_refused_by_the_name_of_its_attribute(
    alice: APIClient, text: str, field: str
) -> None:
    of_no_dag = alice.post(URL, {"requests": text}, format="json")
    node = {"fetch.stork": text.encode()}
    in_a_dag = alice.post(DAGS, dag_form("DATA F fetch.stork\n", files=node))

    for answer in (of_no_dag, in_a_dag):
        assert {each["field"] for each in findings_in(answer)} == {field}
        assert all(each["line"] for each in answer.json()["findings"])
    assert is_nothing_stored()
    assert not PlacementRequest.objects.exists()


def test_a_dag_may_name_an_allocation_that_it_makes_or_that_its_owner_has(alice: APIClient) -> None:
    write = transfer("file:x", "file:///pool/x", "allocation_id = 1").encode()
    make = allocate('size = 1; duration = "1 h"')
    files = {"write.stork": write, "make.stork": make.encode()}
    dag = "DATA M make.stork\nDATA W write.stork\nPARENT M CHILD W\n"

    by_itself = alice.post(DAGS, dag_form(dag, files=files))
    alone = alice.post(DAGS, dag_form("DATA W write.stork\n", files=files))
    alice.post(URL, {"requests": make}, format="json")
    by_the_owner = alice.post(DAGS, dag_form("DATA W write.stork\n", files=files))

    assert [each.status_code for each in (by_itself, alone, by_the_owner)] == [201, 400, 201]
