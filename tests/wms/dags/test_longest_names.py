"""Longest names of files, nodes and DAGs: they work, and one byte more is refused."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wms.dags.driving import advance, claim_of, end, end_script, match, run_all, states
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.dags.models import Dag, Rescue
from wms.dags.rescue.rescue_files import Resumption
from wms.dags.services.dags import rescue_dag
from wms.jobs.attempts.progress import add_attempt_file
from wms.jobs.content.blobs import store_bytes
from wms.jobs.content.job_files import workspace_path
from wms.jobs.content.paths import MAX_NAME_BYTES, MAX_PATH_BYTES
from wms.jobs.description.rendering import (
    CannotRender,
    Identity,
    NodeContext,
    Renderer,
    SiteValues,
)
from wms.jobs.description.submit_file import parse_submit_file
from wms.jobs.models import Attempt, Job, WorkspaceFile
from wms.jobs.specs import CLUSTER_MARK, JobSpec

#: The longest name, also of one that is set aside as `.rescue001.old`.
DAG_FILE = "d" * 237 + ".dag"
#: A directory of 511 bytes: two of them with a slash between them leave room for no name.
DEEP = f"{'d' * 255}/{'e' * 255}"


def fits(path: str) -> bool:
    encoded = path.encode()
    longest = max(map(len, encoded.split(b"/")))
    return len(encoded) <= MAX_PATH_BYTES and longest <= MAX_NAME_BYTES


def places(spec: JobSpec, cluster: int) -> list[str]:
    names = [*spec.input_files, *spec.output_files, spec.stdout_name, spec.stderr_name]
    joined = [posixpath.join(spec.directory, name) for name in names if name]
    every = [spec.directory or "d", spec.executable, *joined]
    return [path.replace(CLUSTER_MARK, str(cluster)) for path in every]


_PARTS = st.sampled_from(["d", "é", "\U0001f600", "$(Process)", "$(Cluster)", "$(x)"])
_NAMES = st.tuples(_PARTS, st.integers(1, 260)).map(lambda part: part[0] * part[1])
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map("/".join)


@pytest.mark.slow
@settings(max_examples=300)
@given(
    directory=st.just("") | st.lists(st.text("dé", min_size=1, max_size=200)).map("/".join),
    initialdir=st.just("") | _PATHS,
    output=_PATHS,
    made=_PATHS,
    executable=_PATHS,
    x=st.text("xé/.", max_size=20),
)
def test_whatever_macros_and_directories_make_of_names_it_is_refused_or_it_fits(
    directory: str, initialdir: str, output: str, made: str, executable: str, x: str
) -> None:
    text = (
        f"executable = {executable}\ninitialdir = {initialdir}\noutput = {output}\n"
        f"error = {output}.err\ntransfer_output_files = {made}\ntransfer_input_files = {made}\n"
        "queue 2\n"
    )
    description = parse_submit_file(text, file="a.sub")
    node = NodeContext("A", 1, variables={"x": x}, directory=posixpath.normpath(directory or "."))
    node = node._replace(directory="" if node.directory == "." else node.directory)
    identity = Identity("alice")
    try:
        for _ in Renderer(description, identity).fields(node, most=10):
            pass
        specs = Renderer(description, identity, SiteValues()).jobs(node)
    except CannotRender:
        return

    assert len(specs) == 2
    for spec in specs:
        for cluster in (1, 2**63 - 1):
            told = [p for p in places(spec, cluster) if not fits(p) and not p.startswith("/")]
            assert told == []
        assert len(spec.executable.replace(CLUSTER_MARK, str(2**63 - 1))) <= MAX_PATH_BYTES


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("output = {}", ""),
        ("error = {}", ""),
        ("transfer_output_files = {}", ""),
        ("output = $(y)\ny = {}", ""),
        ("output = $(Process)/$(y:{})", "queue 2\n"),
    ],
)
def test_a_name_below_the_directories_of_node_and_job_is_refused_before_anything_runs(
    submit, line: str, extra: str
) -> None:
    left = MAX_PATH_BYTES - len(f"{DEEP}/{DEEP[:255]}/") - 2
    text = f"executable = /bin/true\ninitialdir = {DEEP[:255]}\n{line}\n{extra or 'queue'}\n"

    submit(f"JOB A a.sub DIR {DEEP}", files={f"{DEEP}/a.sub": text.format("n" * (left // 2))})
    name = f"{'n' * 150}/{'n' * (left - 148)}"
    with pytest.raises(InvalidInput) as caught:
        submit(f"JOB A a.sub DIR {DEEP}", files={f"{DEEP}/a.sub": text.format(name)})

    [finding] = caught.value.findings
    assert f"at most {MAX_PATH_BYTES}" in finding.message
    assert (finding.file, finding.line) == (f"{DEEP}/a.sub", 3)
    assert Dag.objects.count() == 1


@pytest.mark.slow
@pytest.mark.django_db
def test_a_dag_with_the_longest_names_at_every_field_runs_to_its_end(
    submit, make_site, alice: User
) -> None:
    make_site()
    directory = f"{DEEP}/{'f' * 255}"
    left = MAX_PATH_BYTES - len(f"{directory}/i/")
    assert left == 254
    save_point = f"{DEEP}/{DEEP[:251]}/{'s' * 251}"
    text = (
        f"JOB {'N' * 255} a.sub DIR {directory}\n"
        f"SAVE_POINT_FILE {'N' * 255} {save_point}\n"
        f"SCRIPT DEBUG {'l' * 255} ALL POST {'N' * 255} /{'p' * 1023}\n"
        "JOB B step.sub\n"
        f"PARENT {'N' * 255} CHILD B\n"
        f"CATEGORY B {'c' * 255}\n"
        f"DOT {'p' * 255}\nNODE_STATUS_FILE {'q' * 255}\nJOBSTATE_LOG {'r' * 255}\n"
    )
    description = (
        f"executable = /{'x' * 1023}\ninitialdir = i\noutput = {'o' * left}\n"
        f"error = $(Process){'e' * (left - 1)}\ntransfer_output_files = {'m' * left}\nqueue\n"
    )
    dag = match(submit(text, dag_name=DAG_FILE, files={f"{directory}/a.sub": description}))
    attempt = claim_of("N" * 255)
    job = Job.objects.get(pk=attempt.job_id)
    assert {len(workspace_path(job, each)) for each in (*job.output_files, job.stdout_name)} == {
        1024
    }
    for kind, name in (("output", job.output_files[0]), ("stdout", "stdout"), ("stderr", "stderr")):
        add_attempt_file(attempt, kind=kind, path=name, blob=store_bytes(kind.encode()))

    end(attempt)
    advance(dag)
    end_script(dag, "N" * 255, "post")
    run_all(dag, {"B": 1})

    assert states(dag) == {"N" * 255: "done", "B": "failed"}
    files = set(
        WorkspaceFile.objects.filter(workspace=dag.workspace).values_list("path", flat=True)
    )
    made = {f"{directory}/i/{name}" for name in ("o" * left, "m" * left, f"0{'e' * (left - 1)}")}
    assert made < files
    rescue = f"{DAG_FILE}.rescue001"
    assert {save_point, rescue} < files
    assert set(Rescue.objects.values_list("path", flat=True)) == {save_point, rescue}

    again = rescue_dag(
        dag.pk, actor=Actor.person(alice), reason="x", resumption=Resumption(is_fresh=True)
    )
    match(again)

    files = set(
        WorkspaceFile.objects.filter(workspace=dag.workspace).values_list("path", flat=True)
    )
    assert {f"{rescue}.old", f"{save_point}.old", save_point} < files


@pytest.mark.django_db
@pytest.mark.parametrize("more", [[], ["more.dag"]])
def test_a_dag_whose_rescues_could_have_no_names_is_refused(submit, more: list[str]) -> None:
    name = f"x{DAG_FILE}" if not more else DAG_FILE
    files = {each: "JOB C step.sub" for each in more}

    with pytest.raises(InvalidInput) as caught:
        submit("JOB A step.sub", dag_name=name, files=files, more_dags=tuple(more))

    [finding] = caught.value.findings
    assert finding.file == name
    assert "rescues" in finding.message


@pytest.mark.django_db
def test_a_name_that_only_the_number_of_the_cluster_makes_too_long_holds_the_dag(
    submit, make_site
) -> None:
    make_site()
    long = f"executable = /bin/true\noutput = $(Cluster){'o' * 237}\nqueue\n"
    good = f"executable = /bin/true\noutput = $(Cluster){'o' * 236}\nqueue\n"

    dag = match(submit("JOB A a.sub\nJOB B b.sub", files={"a.sub": long, "b.sub": good}))

    assert dag.state == "held"
    assert dag.state_reason.startswith("node A: output:")
    assert "256 bytes" in dag.state_reason
    assert not Job.objects.filter(name="A").exists()
    assert not Attempt.objects.exists()
