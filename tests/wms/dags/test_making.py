"""Jobs of ready nodes: lists, descriptions that come late, and what few nodes have."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.wms.dags.driving import advance, claim_of, end, match, states
from wms.dags.engine.submitting import job_factory
from wms.dags.engine.submitting.job_factory import Fault, make_specs
from wms.dags.engine.submitting.throttles import ready_nodes
from wms.dags.models import Dag, Node
from wms.dags.states import NodeCause
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Job, WorkspaceFile
from wms.jobs.specs import JobSpec


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site("site-a", queue={"max_pilots": 2, "memory_mb": 8000, "cores": 4})


def write(dag: Dag, path: str, text: str) -> None:
    blob = store_bytes(text.encode())
    WorkspaceFile.objects.create(workspace=dag.workspace, path=path, blob=blob)


def rewrite(dag: Dag, path: str, text: str) -> None:
    """Change a file, as a PRE script does."""
    file = WorkspaceFile.objects.get(workspace=dag.workspace, path=path)
    file.blob = store_bytes(text.encode())
    file.save()


def made(dag: Dag, **values: object) -> dict[str, list[JobSpec] | Fault]:
    """What would be made of all nodes now, with other values in their rows."""
    nodes = ready_nodes(Node.objects.filter(dag=dag).order_by("ordinal"))
    changed = [node._replace(**values) for node in nodes]
    return {node.name: specs for node, specs in make_specs(dag, changed)}


def late(source: str, **features: object) -> Mapping[str, object]:
    """The columns of a node whose description was not sent."""
    return {
        "submit_description_id": None,
        "features": {"source": source, **features},
    }


def test_a_list_of_jobs_is_one_cluster_in_its_order(submit) -> None:
    text = (
        "executable = step.sh\narguments = $(x)\noutput = $(Cluster).$(Process)\nqueue x in (a, b)"
    )

    match(submit("JOB A step.sub", files={"step.sub": text}))

    first, second = Job.objects.order_by("pk")
    assert (first.arguments, second.arguments) == (["a"], ["b"])
    assert (first.cluster_id, second.cluster_id) == (first.pk, first.pk)
    assert (first.process, second.process) == (0, 1)
    assert (first.stdout_name, second.stdout_name) == (f"{first.pk}.0", f"{first.pk}.1")


def test_a_description_that_was_not_sent_is_read_when_its_node_is_submitted(submit) -> None:
    dag = match(submit("JOB A step.sub"))
    write(dag, "late.sub", "executable = /bin/true\narguments = $(JOB) $(n)\nqueue n in (1, 2)")

    specs = made(dag, **late("late.sub"))["A"]

    assert isinstance(specs, list)
    assert [spec.arguments for spec in specs] == [("A", "1"), ("A", "2")]


def test_a_description_that_changed_is_read_when_its_node_is_submitted_and_at_each_retry(
    submit,
) -> None:
    other = "executable = /bin/true\narguments = unchanged\nqueue"
    text = "JOB A step.sub\nRETRY A 1\nJOB B other.sub\nPARENT A CHILD B\nJOB C step.sub"
    dag = match(submit(f"{text}\nPARENT B CHILD C", files={"other.sub": other}))
    rewrite(dag, "step.sub", "executable = /bin/true\narguments = again $(RETRY)\nqueue 2")
    end(claim_of("A"), exit_code=1)

    advance(dag)

    again = Job.objects.filter(name="A", state="waiting")
    assert [job.arguments for job in again] == [["again", "1"]] * 2
    for job in again:
        end(claim_of(job.name))
    advance(dag)
    assert claim_of("B").job.arguments == ["unchanged"]


def test_a_description_that_was_broken_fails_its_own_nodes(submit) -> None:
    dag = match(submit("JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nJOB C step.sub"))
    rewrite(dag, "step.sub", "executable = (\nwhat is this")
    end(claim_of("A"))

    advance(dag)

    assert states(dag) == {"A": "done", "B": "failed", "C": "submitted"}
    assert Node.objects.get(dag=dag, name="B").state_cause == NodeCause.SUBMISSION


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "node A: there is no submit description late.sub, or it is no text"),
        ("executable = (\nwhat is this", "node A: late.sub:2: expected `name = value`"),
        ("queue", "node A: no executable is named"),
        ("executable = x\0", "node A: late.sub contains a zero byte"),
    ],
)
def test_a_late_description_that_is_missing_or_wrong_fails_its_own_node_for_good(
    submit, text: str | None, reason: str
) -> None:
    dag = match(submit("JOB A step.sub\nJOB B step.sub"))
    if text is not None:
        write(dag, "late.sub", text)
    first, second = ready_nodes(Node.objects.filter(dag=dag).order_by("ordinal"))
    first = first._replace(**late("late.sub"))

    (_, fault), (_, specs) = make_specs(dag, [first, second])

    assert isinstance(fault, Fault)
    assert fault.is_lasting
    assert fault.reason.startswith(reason)
    assert isinstance(specs, list)


def test_other_faults_are_those_of_the_dag_and_nothing_is_made_behind_them(submit) -> None:
    text = "executable = step.sh\narguments = $$(Nothing)\nqueue"
    dag = match(submit("JOB A a.sub\nJOB B step.sub", files={"a.sub": text}))

    (only,) = made(dag).values()

    assert isinstance(only, Fault)
    assert not only.is_lasting


def test_a_round_makes_no_more_than_so_many_jobs(submit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_factory, "MOST_JOBS", 5)
    text = "executable = step.sh\nqueue 3"
    dag = match(submit("\n".join(f"JOB N{n} a.sub" for n in range(4)), files={"a.sub": text}))

    assert list(made(dag)) == ["N0", "N1"]


def test_a_round_makes_no_more_jobs_behind_so_much_text(
    submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_factory, "MOST_TEXT", 2_500)
    text = f"executable = step.sh\n+Note = {'x' * 500}\nqueue 3"
    dag = match(submit("\n".join(f"JOB N{n} a.sub" for n in range(4)), files={"a.sub": text}))

    assert list(made(dag)) == ["N0", "N1"]


def test_what_retry_changes_is_changed_for_retries_only(submit) -> None:
    text = "executable = step.sh\nrequest_memory = 1G\nqueue"
    dag = match(
        submit(
            "JOB A a.sub\nRETRY A 2 WITH request_memory*=2 request_cpus=2", files={"a.sub": text}
        )
    )

    for memory_mb, cores in ((1024, 1), (2048, 2), (4096, 2)):
        job = Job.objects.latest("pk")
        assert (job.needs["memory_mb"], job.needs["cores"]) == (memory_mb, cores)
        end(claim_of("A"), exit_code=1)
        dag = advance(dag)

    assert states(dag) == {"A": "failed"}


def test_a_node_avoids_sites_where_it_ran_but_not_the_one_where_its_dag_is(submit) -> None:
    dag = match(submit("JOB A step.sub\nRETRY A 2 AVOID-SITES"))
    end(claim_of("A"), exit_code=1)
    Job.objects.get().attempts.update(site_name="T2_X")
    advance(dag)

    job = Job.objects.latest("pk")
    assert (job.needs["banned_sites"], job.needs["sites"]) == (["T2_X"], ["site-a"])
    end(claim_of("A"), exit_code=1)
    advance(dag)

    assert Job.objects.latest("pk").needs["banned_sites"] == ["T2_X"]


def test_names_of_parents_are_read_once_for_all_nodes(submit, django_assert_num_queries) -> None:
    text = "executable = step.sh\narguments = $(DAG_PARENT_NAMES)\nqueue"
    dag = match(
        submit(
            "JOB P a.sub\nJOB Q a.sub\nJOB A a.sub\nJOB B a.sub\nPARENT P Q CHILD A\n"
            "PARENT Q CHILD B",
            files={"a.sub": text},
        )
    )
    nodes = ready_nodes(Node.objects.filter(dag=dag))
    list(make_specs(dag, nodes[:2]))

    with django_assert_num_queries(5):
        found = list(make_specs(dag, nodes))

    assert {node.name: specs[0].arguments for node, specs in found if isinstance(specs, list)} == {
        "P": (),
        "Q": (),
        "A": ("P,Q",),
        "B": ("Q",),
    }


def test_files_of_a_node_are_those_of_its_directory(submit) -> None:
    text = "executable = run.sh\ntransfer_input_files = in.txt\noutput = out.txt\nqueue"
    match(submit("JOB A a.sub DIR d", files={"d/a.sub": text, "d/run.sh": "", "d/in.txt": "1"}))
    attempt = claim_of("A")

    end(attempt)

    job = Job.objects.get()
    assert (job.executable, job.directory, job.input_files) == ("d/run.sh", "d", ["in.txt"])
