"""What `$$(...)` and `$ENV(...)` become in a DAG's environment and in its jobs."""

from __future__ import annotations

import pytest

from matching.descriptions.substitution import OwnAttributes
from tests.wms.dags.driving import advance, assert_log_agrees, match, run_one, states
from tests.wms.dags.test_needs_of_jobs import in_group
from wms.core.errors import InvalidInput
from wms.dags.language.parser import parse_dag
from wms.dags.models import Dag
from wms.dags.submission.submit import submission_warnings
from wms.dags.submission.unknown_references import unknown_references
from wms.jobs.description import timed_evaluation
from wms.jobs.description.submit_file import parse_submit_file
from wms.jobs.models import Job


def step(*lines: str) -> dict[str, str]:
    return {"step.sub": "\n".join(["executable = step.sh", *lines, "queue", ""])}


def description(environment: str, *lines: str) -> dict:
    return {
        "description_text": "\n".join(
            ["universe = grid", f"environment = {environment}", *lines, "queue", ""]
        ),
        "description_name": "group.sub",
    }


def test_an_environment_value_that_looks_like_a_reference_is_not_expanded_again(
    submit, make_site
) -> None:
    make_site("site-a", environment="Pattern=$$(Name)-%d")
    files = step("arguments = $ENV(Pattern)", "environment = P=$ENV(Pattern)")

    match(submit("JOB A step.sub", files=files))

    job = Job.objects.get()
    assert job.arguments == ["$$(Name)-%d"]
    assert job.environment == {"P": "$$(Name)-%d"}


def test_what_a_job_used_of_the_site_is_kept_with_it(submit, make_site) -> None:
    make_site("site-a", attributes='Port = "8443"')
    files = step("arguments = $$(name) $$(Port) $$(Queue:short)", "universe = vanilla")

    match(submit("JOB A step.sub", files=files))

    attributes = Job.objects.get().attributes
    assert attributes["MATCH_Name"] == "site-a"
    assert attributes["MATCH_Port"] == "8443"
    assert attributes["MATCH_Queue"] == "short"


def test_a_retry_uses_what_held_when_the_dag_was_matched(submit, make_site) -> None:
    make_site("site-a", attributes='Port = "8443"')
    dag = match(submit("JOB A step.sub\nRETRY A 1", files=step("arguments = $$(Port)")))
    make_site("site-a", attributes='Port = "9999"')

    run_one("A", exit_code=1)
    advance(dag)

    assert [job.arguments for job in Job.objects.all()] == [["8443"], ["8443"]]


def test_an_expression_in_a_job_sees_the_dag_and_the_site(submit, make_site) -> None:
    make_site("site-a", attributes="CoresPerNode = 8")
    files = step('arguments = $$([strcat(MY.DagName, "@", TARGET.Name)]) $$([CoresPerNode / 2])')

    match(submit("JOB A step.sub", files=files, dag_name="mc.dag"))

    assert Job.objects.get().arguments == ["mc@site-a", "4"]


def test_an_expression_in_a_dags_environment_sees_both_sides(submit, make_site) -> None:
    make_site("site-a", attributes="CoresPerNode = 8")
    group = description("Cores=$$([TARGET.CoresPerNode / MY.Parts]);At=$$(name)", "+Parts = 2")

    dag = match(submit("JOB A step.sub", files=step("arguments = $ENV(Cores) $ENV(At)"), **group))

    assert Job.objects.get().arguments == ["4", "site-a"]
    assert dag.substitutions == {"MATCH_Name": "site-a"}


@pytest.mark.parametrize(
    ("text", "name"), [("$$(Gatekeeper)", "Gatekeeper"), ("$$([TARGET.Gate])", "[TARGET.Gate]")]
)
def test_a_dag_whose_environment_is_undefined_at_the_site_is_held_with_the_name(
    submit, make_site, text: str, name: str
) -> None:
    make_site("site-a")

    dag = match(submit("JOB A step.sub", **description(f"A={text}")))

    assert (dag.state, dag.site) == ("held", None)
    assert f"$$({name}) " in dag.state_reason
    assert dag.state_reason.startswith("matched to site-a, ")
    assert_log_agrees(dag)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("$ENV(Area)", "$ENV(Area)"),
        ("$$(Gatekeeper)", "$$(Gatekeeper)"),
        ("$$([TARGET.Gate])", "$$([TARGET.Gate])"),
    ],
)
def test_a_dag_with_a_job_that_is_undefined_at_the_site_is_held_with_the_name(
    submit, make_site, text: str, name: str
) -> None:
    make_site("site-a")

    dag = match(submit("JOB A step.sub", files=step(f"arguments = {text}")))

    assert dag.state == "held"
    assert dag.state_reason.startswith(f"node A: arguments: {name} ")
    assert states(dag) == {"A": "ready"}
    assert_log_agrees(dag)


def test_a_faulty_expression_is_refused_at_submission_with_file_and_line(submit) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit(
            'JOB A step.sub\nVARS A x="$$([2 *])"',
            files=step("# a remark", "arguments = $$([1 +])"),
            **description("A=$$([= 1])"),
        )

    places = {(finding.file, finding.line) for finding in caught.value.findings}
    assert places == {("test.dag", 2), ("step.sub", 3), ("group.sub", 2)}
    assert "arguments: $$([1 +])" in str(caught.value)
    assert not Dag.objects.exists()


def test_expressions_that_take_too_long_hold_the_dag(submit, make_site, monkeypatch) -> None:
    monkeypatch.setattr(timed_evaluation, "TIME_LIMIT_S", -1.0)
    make_site("site-a")

    text = "executable = /bin/echo\narguments = $$([1 + 1])\nqueue\n"
    dag = match(submit("JOB A step.sub", files={"step.sub": text}))

    assert dag.state == "held"
    assert "its $$([...]) take longer" in dag.state_reason


def test_an_expression_is_evaluated_once_for_all_nodes_that_are_alike_in_it() -> None:
    asked = []
    value_of = timed_evaluation.with_time_limit(
        lambda text, own: asked.append(text) or f"{text}{own.values}"
    )
    first, other = OwnAttributes({}, {"N": 1}), OwnAttributes({}, {"N": 2})

    told = [value_of("a", first), value_of("b", first), value_of("a", first), value_of("a", other)]

    assert told == ["a{'N': 1}", "b{'N': 1}", "a{'N': 1}", "a{'N': 2}"]
    assert asked == ["a", "b", "a"]


def test_an_expression_in_a_job_sees_what_is_the_jobs_own(submit, make_site, alice) -> None:
    make_site("site-a", attributes="CoresPerNode = 8", queue={"cores": 2})
    in_group(alice)
    lines = [
        'arguments = "$$([DAGNodeName]) $$([MY.DAGParentNodeNames]) $$([JobBatchName]) $$([Owner])'
        " $$([AcctGroup]) $$([AccountingGroup]) $$([DAGManNodeRetry]) $$([ProcId]) $$([ClusterId])"
        ' $$([RequestCpus * TARGET.CoresPerNode]) $$([Twice]) $$([Given])"',
        "request_cpus = 2", "+Twice = Half * 4", "+Half = RequestCpus / 2",
    ]  # fmt: skip
    text = """
        JOB P step.sub
        JOB Q step.sub
        JOB A a.sub
        VARS A +Given="\\"of $(JOB)\\""
        PARENT P Q CHILD A
    """
    files = {
        "step.sub": "executable = step.sh\nqueue\n",
        "a.sub": "\n".join(["executable = step.sh", *lines, "queue 2", ""]),
    }
    dag = match(
        submit(
            text,
            files=files,
            dag_name="mc.dag",
            description_text="accounting_group = physics\n",
            description_name="group.sub",
        )
    )

    run_one("P")
    run_one("Q")
    advance(dag)

    first, second = Job.objects.filter(name="A").order_by("pk")
    shared = ["A", "P,Q", "mc", "alice", "physics", "physics", "0"]
    assert first.arguments == [*shared, "0", str(first.pk), "16", "4", "of", "A"]
    assert second.arguments == [*shared, "1", str(first.pk), "16", "4", "of", "A"]
    assert_log_agrees(dag)


def test_what_nothing_has_a_value_for_is_told_at_submission(submit, make_site) -> None:
    make_site("site-a", attributes="CoresPerNode = 8")
    match(submit("JOB A step.sub", files=step()))
    lines = [
        "arguments = $$(CoresPerNode) $$(Gate) $$(Door:none) $$([CoresPerNode + Cores])",
        "environment = A=$$([MY.Mine]);B=$$([DAGNodeName]);C=$$([DAGNodeNmae]);D=$$([MY.Theirs])",
        "output = $$([TARGET.DAGNodeName]).$$([Given]).$$([$(x)]).$$([MY.CoresPerNode])",
        "+Mine = 1",
    ]
    text = 'JOB A step.sub\nVARS A +Given="1"'

    dag = submit(text, files=step(*lines), **description("X=1", "+Theirs = 2"))

    expected = [
        (2, "arguments", "cores"),
        (2, "arguments", "Gate"),
        (3, "environment", "dagnodenmae"),
        (4, "output", "corespernode"),
        (4, "output", "dagnodename"),
    ]
    for (line, command, name), warning in zip(expected, submission_warnings(dag), strict=True):
        assert warning.line == line
        assert warning.message.startswith(f"{command}: ")
        assert f"has {name}" in warning.message


def test_of_a_faulty_description_no_attribute_is_said_to_be_unknown() -> None:
    """The line at fault may be the one that gives it."""
    text = "executable = a.sh\narguments = $$([MY.Mine])\n+Mine 1\nqueue\n"
    read = parse_submit_file(text, file="a.sub")
    dag = parse_dag(["a.dag"], {"a.dag": "JOB A a.sub"}.get)

    assert read.findings
    assert unknown_references(dag, {"a.sub": read}, of_dag=(), of_sites={"gate"}) == []
