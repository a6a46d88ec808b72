"""A service that is killed while a program moves a file takes the program with it."""

from __future__ import annotations

import multiprocessing

import pytest

from tests.batch_systems.services import wait_until
from tests.wms.placement.conftest import placed
from tests.wms.placement.programs.conftest import is_running
from wms.placement.conf import placement_conf
from wms.placement.modules import carry_out
from wms.placement.modules.protocol import Credential, TransferTask
from wms.placement.request_ad import Checksums
from wms.placement.states import RequestKind

pytestmark = [pytest.mark.django_db, pytest.mark.process]


def test_nothing_of_a_killed_service_is_left_for_the_next_one(transfer, program, fenced):
    program("stork.transfer.web-file", 'echo begun >"${2#file://}"; exec sleep 31415')
    task = TransferTask(
        request_id=1, source_url="web://127.0.0.1/x", destination_url="file:x", arguments="",
        workspace_id=0, directory="", checksums=Checksums(), expected_bytes=None,
        conf=placement_conf(), pulse=lambda: None,
        credential=lambda *_: Credential(token="sesame"),
    )  # fmt: skip
    # Forked: it needs no database before the file is there.
    service = multiprocessing.get_context("fork").Process(
        target=carry_out, args=(RequestKind.TRANSFER, ("web", "file"), task)
    )

    service.start()
    assert wait_until(lambda: is_running("31415"), 30)
    service.kill()
    service.join()

    assert wait_until(lambda: not is_running("31415"), 30)
    program("stork.transfer.web-file", 'test ! -e x && echo again >"${2#file://}"')
    done = transfer("web://127.0.0.1/x", "file:x")
    assert placed(done, "x") == b"again\n", done.state_reason
    assert not [each for each in fenced.rglob("*") if each.name.endswith(".token")]
