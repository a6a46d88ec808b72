from __future__ import annotations

import re

import pytest

from wms.core.errors import InvalidInput
from wms.dags.engine.submitting import nodes_without_jobs
from wms.dags.models import Dag, Node
from wms.dags.rescue import rescue_files
from wms.dags.submission import workspaces
from wms.dags.submission.workspaces import read_file
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Blob, Workspace
from wms.jobs.operations import create_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace(alice) -> Workspace:
    return create_workspace(alice, {"d/file": store_bytes(b"content")})


def pretend_size(workspace: Workspace, size_bytes: int) -> None:
    Blob.objects.filter(pk__in=workspace.files.values("blob_id")).update(size_bytes=size_bytes)


def test_a_file_is_read_up_to_a_limit(workspace):
    assert read_file(workspace.pk, "d/file", limit_bytes=7) == b"content"
    assert read_file(workspace.pk, "other", limit_bytes=7) is None


def test_a_file_beyond_the_limit_is_refused_with_its_name_and_both_sizes(workspace):
    with pytest.raises(InvalidInput) as refused:
        read_file(workspace.pk, "d/file", limit_bytes=6)

    (finding,) = refused.value.findings
    assert finding.file == "d/file"
    assert re.findall(r"[0-9]+", finding.message) == ["7", "6"]


def test_without_another_limit_no_file_is_read_that_would_fill_the_memory(workspace):
    pretend_size(workspace, workspaces.MAX_READ_BYTES + 1)

    with pytest.raises(InvalidInput, match="d/file"):
        read_file(workspace.pk, "d/file")


def test_a_save_point_that_is_too_large_is_refused(workspace):
    pretend_size(workspace, 2**40)

    with pytest.raises(InvalidInput, match="at most"):
        rescue_files._read(workspace, "d/file", 0)


def test_a_placement_request_that_is_too_large_is_refused(alice, workspace):
    pretend_size(workspace, nodes_without_jobs.MAX_REQUEST_BYTES + 1)
    dag = Dag.objects.create(name="a.dag", owner=alice, workspace=workspace)
    node = Node.objects.create(dag=dag, name="A", ordinal=0, features={"source": "d/file"})

    with pytest.raises(InvalidInput, match=f"at most {nodes_without_jobs.MAX_REQUEST_BYTES}"):
        nodes_without_jobs._request_text(dag, node)
