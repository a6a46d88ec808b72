"""A client that `openapi-python-client` makes of the schema, untouched, drives a DAG."""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.test import Client as DjangoClient
from openapi_python_client import MetaType, generate
from openapi_python_client.config import Config, ConfigFile

from tests import factories

PACKAGE = "generated_pilotage_client"


class PortalTransport(httpx.BaseTransport):
    """Requests of httpx to the portal in this process, without a socket."""

    def __init__(self) -> None:
        self._client = DjangoClient(enforce_csrf_checks=True)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        headers = {name: value for name, value in request.headers.items() if name != "host"}
        answer = self._client.generic(
            request.method,
            request.url.raw_path.decode(),
            request.read(),
            content_type=headers.pop("content-type", "application/octet-stream"),
            headers=headers,
        )
        content = b"".join(answer) if answer.streaming else answer.content
        return httpx.Response(answer.status_code, headers=dict(answer.items()), content=content)


@pytest.fixture(scope="module")
def package(
    schema: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SimpleNamespace]:
    """Looks modules of the client up by their names."""
    folder = tmp_path_factory.mktemp("client")
    document = Path(folder, "openapi.json")
    document.write_text(json.dumps(schema))
    config = Config.from_sources(
        # The hooks make the code look well, and take half of the time.
        ConfigFile(post_hooks=[]), MetaType.NONE, document, "utf-8", overwrite=True,
        output_path=Path(folder, PACKAGE),
    )  # fmt: skip
    errors = [each for each in generate(config=config) if each.level.value == "ERROR"]
    assert errors == []
    sys.path.insert(0, str(folder))
    yield SimpleNamespace(module=lambda name: importlib.import_module(f"{PACKAGE}.{name}"))
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


@pytest.mark.slow
def test_it_submits_follows_steers_and_reads(
    package: SimpleNamespace, people: SimpleNamespace
) -> None:
    site = factories.site()
    models, types = package.module("models"), package.module("types")
    client = package.module("client").AuthenticatedClient(
        base_url="http://testserver",
        token=factories.token_for(people.alice),
        raise_on_unexpected_status=True,
        httpx_args={"transport": PortalTransport()},
    )

    def call(name: str, *path: Any, **given: Any) -> Any:
        answer = package.module(f"api.{name}").sync_detailed(*path, client=client, **given)
        assert answer.status_code < 300, answer.content
        return answer.parsed

    def file(name: str, text: str) -> Any:
        return types.File(io.BytesIO(text.encode()), file_name=name)

    # It logs in.
    assert call("me.me").username == "alice"

    # It submits a DAG with its files, once.
    def submission() -> Any:
        return models.SubmissionRequest(
            dag=[file("run.dag", factories.dag_text(2, is_chain=True))],
            file=[file("job.sub", factories.SUBMIT_FILE), file("run.sh", "#!/bin/sh\n")],
        )

    dag = call("dags.dags_create", body=submission(), idempotency_key="monday")
    again = call("dags.dags_create", body=submission(), idempotency_key="monday")
    assert (dag.id, dag.state.value, dag.nodes.total) == (again.id, "idle", 2)

    # It asks why, holds and releases.
    why = call("explain.explain", body=models.QuestionRequest(dag=dag.id))
    assert why.summary
    held = call("dags.dags_hold_create", dag.id, body=models.ReasonRequest(reason="look"))
    assert held.state.value == "held"
    released = call("dags.dags_release_create", dag.id, body=models.ReasonRequest())
    assert released.state.value == "idle"

    # It follows the DAG to its failure, and reads what was printed.
    factories.turn()
    worker = factories.pilot(site.queues.get())
    factories.run_job(worker)
    factories.turn()
    factories.run_job(worker, exit_code=3, stdout=b"no luck\n")
    factories.turn()
    assert call("dags.dags_retrieve", dag.id).state.value == "failed"
    page = call("jobs.jobs_list", dag=[str(dag.id)], page_size=1)
    [job] = page.results
    assert call("jobs.jobs_stdout_retrieve", job.id) == "no luck\n"
    rest = call("jobs.jobs_list", dag=[str(dag.id)], page_size=1, cursor=page.next_cursor)
    assert ([each.name for each in rest.results], rest.next_cursor) == (["A1"], None)

    # It resumes from the rescue.
    [rescue] = call("dags.dags_rescues_list", dag.id).results
    assert rescue.done_count == 1
    second = call(
        "dags.dags_rescue",
        dag.id,
        body=models.RescueDagRequest(reason="mended"),
        idempotency_key="x",
    )
    assert (second.previous_run, second.nodes.done) == (dag.id, 1)
