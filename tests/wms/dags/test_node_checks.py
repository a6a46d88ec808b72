"""Faults and warnings about a DAG's nodes before the match."""

from __future__ import annotations

from itertools import count

import pytest

from matching.negotiation.deadline import Deadline
from wms.core.errors import Finding
from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import DagSpec, NodeSpec, SourceLocation, Variable
from wms.dags.states import NodeKind
from wms.dags.submission import node_checks
from wms.dags.submission.node_checks import check_nodes
from wms.jobs.description.submit_file import SubmitFile, parse_submit_file

PLAIN = "executable = job.sh\nqueue\n"


def check(
    dag_text: str, *, uploaded: tuple[str, ...] = ("job.sh",), **files: str
) -> tuple[list[Finding], list[Finding]]:
    """Faults and warnings of a DAG; `files` are descriptions by the name before `.sub`."""
    dag = parse_dag(["a.dag"], {"a.dag": dag_text}.get)
    assert dag.findings == []
    submit_files = {
        f"{name}.sub": parse_submit_file(text, file=f"{name}.sub") for name, text in files.items()
    }
    submit_files |= {
        key: parse_submit_file(
            each.text, file=each.location.file, first_line=each.location.line + 1
        )
        for key, each in dag.descriptions.items()
    }
    return run(dag, submit_files, uploaded)


def run(
    dag: DagSpec, submit_files: dict[str, SubmitFile], uploaded: tuple[str, ...], **options
) -> tuple[list[Finding], list[Finding]]:
    found = check_nodes(
        dag,
        submit_files,
        uploaded=uploaded,
        owner_name="alice",
        group_name="",
        cpu_segments_s=(500, 5000),
        offered=None,
        **options,
    )
    return found.faults, found.warnings


def locations(findings: list[Finding]) -> list[tuple[str, int | None]]:
    return [(each.file, each.line) for each in findings]


def test_a_dag_that_is_well_has_neither_faults_nor_warnings() -> None:
    faults, warnings = check("JOB A a.sub\nJOB B a.sub\nPARENT A CHILD B", a=PLAIN)

    assert (faults, warnings) == ([], [])


@pytest.mark.parametrize(
    ("dag", "text", "location", "subject"),
    [
        ("JOB A a.sub", 'arguments = "\'x"', ("a.sub", 2), "a single quote"),
        (
            'JOB A a.sub\nVARS A x="\'"',
            'arguments = "y $(x)"',
            ("a.sub", 2),
            "node A: a single quote",
        ),
        (
            'JOB A a.sub\nVARS A mb="much"',
            "request_memory = $(mb)",
            ("a.dag", 2),
            "request_memory ",
        ),
        (
            'JOB A a.sub\nVARS A APPEND request_cpus="two"',
            "request_cpus = 2",
            ("a.dag", 2),
            "request_cpus ",
        ),
        (
            'JOB A a.sub\nVARS A request_cpus="two"',
            "",
            ("a.dag", 2),
            "request_cpus ",
        ),
        ("JOB A a.sub", "universe = java", ("a.sub", 2), "universe java:"),
        ("JOB A a.sub", "a = $(b)\nb = $(a)", ("a.sub", 2), "node A: a:"),
        (
            "JOB A a.sub",
            "queue 0\nqueue x from gone.txt",
            ("a.sub", 3),
            "queue of node A ",
        ),
        (
            "JOB A a.sub\nRETRY A 3 WITH request_memory*=2",
            "",
            ("a.dag", 1),
            "RETRY, in retry 1: request_memory:",
        ),
        (
            "JOB A a.sub\nRETRY A 3 WITH +CPUTimeSeconds=soon",
            "",
            ("a.dag", 1),
            "RETRY, in retry 1: +CPUTimeSeconds ",
        ),
        (
            "JOB A a.sub",
            "request_cpus = $(Process)\nqueue 3\nqueue n from (\n 1\n x\n)\nrequest_cpus = $(n)",
            ("a.sub", 8),
            "node A: request_cpus:",
        ),
    ],
)
def test_a_fault_of_a_node_is_told_where_it_is_written(
    dag: str, text: str, location: tuple[str, int], subject: str
) -> None:
    faults, _ = check(dag, a=f"executable = job.sh\n{text}\nqueue\n")

    messages = [each.message for each in faults if (each.file, each.line) == location]
    assert any(each.startswith(subject) for each in messages), faults


def test_faults_of_inline_descriptions_have_the_lines_of_the_dag_file() -> None:
    faults, _ = check("JOB A {\n  executable = job.sh\n  request_cpus = 0\n}\n")

    assert locations(faults) == [("a.dag", 3)]
    assert faults[0].message.startswith("request_cpus:")


def test_what_is_known_only_later_is_no_fault() -> None:
    text = (
        "executable = $$(Path)/x\nrequest_memory = $(DAG_STATUS)\nrequest_cpus = $ENV(N)\n"
        "output = $(Cluster).out\ntransfer_input_files = in.$(DAGManJobId), $(late)\n"
        "arguments = $(n)\nqueue n from list.txt\n"
    )

    faults, _ = check(
        'JOB A a.sub\nVARS A late="$(DAG_PARENT_NAMES)"', uploaded=("list.txt",), a=text
    )

    assert faults == []


def test_inputs_from_nowhere_are_faults_and_those_that_nodes_make_are_none() -> None:
    makes = "executable = job.sh\ntransfer_output_files = $(JOB).dat\noutput = $(JOB).log\nqueue\n"
    takes = "executable = job.sh\ntransfer_input_files = A.dat, A.log, B.dat\nqueue\n"

    faults, _ = check("JOB A make.sub\nJOB C take.sub\nPARENT A CHILD C", make=makes, take=takes)

    assert locations(faults) == [("take.sub", 2)]
    assert faults[0].message.startswith("transfer_input_files ")
    assert faults[0].message.endswith(" B.dat")


WANTS = f"transfer_input_files = x.root\n{PLAIN}"


@pytest.mark.parametrize(
    ("maker", "faults"),
    [
        # A fault of the description itself is told by who reads it.
        (f"transfer_output_files x.root\n{PLAIN}", []),
        (f"transfer_output_files = x.root\nrequest_cpus = $(\n{PLAIN}", ["request_cpus"]),
        (f"transfer_output_files = x.root\nrequest_memory = lots\n{PLAIN}", ["request_memory"]),
    ],
)
def test_of_what_a_faulty_description_may_make_nothing_is_said(
    maker: str, faults: list[str]
) -> None:
    found, warnings = check("JOB A a.sub\nJOB B b.sub\nPARENT A CHILD B", a=maker, b=WANTS)

    assert warnings == []
    assert len(found) <= len(faults)
    assert not [each for each in found if "x.root" in each.message]


def test_a_fault_that_leaves_outputs_known_hides_no_missing_input() -> None:
    faults, _ = check("JOB A a.sub\nRETRY A 1 WITH +CPUTimeSeconds=soon", a=WANTS)

    assert [each for each in faults if "x.root" in each.message]
    assert len(faults) == 2


def test_where_a_script_may_make_an_input_that_is_missing_is_only_a_warning() -> None:
    text = "executable = job.sh\ntransfer_input_files = in.dat\nqueue\n"

    faults, warnings = check("JOB A a.sub\nSCRIPT PRE A make.sh", a=text)

    assert faults == []
    assert locations(warnings) == [("a.sub", 2)]
    assert "in.dat" in warnings[0].message


def test_files_are_looked_for_in_the_directory_of_the_node() -> None:
    text = "executable = job.sh\ninitialdir = sub\ntransfer_input_files = in.dat\nqueue\n"
    dag = parse_dag(["a.dag"], {"a.dag": "JOB A a.sub DIR d"}.get)
    submit_files = {"d/a.sub": parse_submit_file(text, file="d/a.sub")}

    assert run(dag, submit_files, ("d/job.sh", "d/sub/in.dat")) == ([], [])
    assert len(run(dag, submit_files, ("job.sh", "in.dat"))[0]) == 2


def test_commands_that_mean_nothing_here_are_told_with_what_may_be_meant() -> None:
    text = (
        "executable = job.sh\nrequest_cpu = 2\nx = 1\narguments = $(x)\nunknown = 3\n"
        "getenv = true\nlog = a.log\nnotification = never\nqueue\n"
    )

    _, warnings = check("JOB A a.sub", a=text)

    assert locations(warnings) == [("a.sub", 2), ("a.sub", 5), ("a.sub", 6)]
    assert [each.message.split()[0] for each in warnings] == ["request_cpu", "unknown", "getenv"]
    assert "request_cpus" in warnings[0].message
    assert warnings[2].message.endswith(" environment")


def test_nodes_that_run_no_description_are_left_out() -> None:
    text = "JOB A none.sub NOOP\nSUBDAG EXTERNAL B inner.dag\nDATA C c.stork"

    assert check(text) == ([], [])


@pytest.mark.slow
def test_two_hundred_thousand_nodes_are_checked() -> None:
    location = SourceLocation("a.dag", 1)
    nodes = {
        f"N{n}": NodeSpec(
            f"N{n}",
            NodeKind.JOB,
            "a.sub",
            *location,
            variables={
                "seed": Variable("seed", str(n), location),
                "x": Variable("x", "y", location),
            },
        )
        for n in range(200_000)
    }
    text = "executable = job.sh\narguments = --node $(JOB) --seed $(seed) --x $(x)\nqueue\n"
    submit_files = {"a.sub": parse_submit_file(text, file="a.sub")}

    assert run(DagSpec(nodes=nodes), submit_files, ("job.sh",)) == ([], [])


@pytest.mark.parametrize(
    "line", ["x = {}", "+X = {}", "queue {}", "queue in ({})", "queue from {}"]
)
def test_macros_nested_too_deep_are_faults_of_their_line(line: str) -> None:
    text = line.format("$(a:" * 600 + ")" * 600)

    (finding,) = parse_submit_file(f"executable = x\n{text}\n", file="a.sub").findings

    assert finding.line == 2
    assert "20 macros" in finding.message


def test_a_command_that_uses_itself_again_and_again_does_not_grow_without_bounds() -> None:
    parsed = parse_submit_file("x = 12345678\n" + "x = $(x)$(x)\n" * 100, file="a.sub")

    assert len(parsed.commands["x"]) <= 128 * 1024
    assert parsed.findings[0].line
    assert "expand" in parsed.findings[0].message


def test_the_check_ends_when_the_time_is_up_and_tells_how_far_it_came() -> None:
    dag = parse_dag(["a.dag"], {"a.dag": "\n".join(f"JOB N{n} a.sub" for n in range(100))}.get)
    files = {"a.sub": parse_submit_file("executable = /a\noutput = $(JOB)\nqueue", file="a.sub")}
    seconds = count()

    (finding,), _ = run(dag, files, (), deadline=Deadline(lambda: next(seconds), 20))

    assert next(seconds) < 25
    assert (finding.file, finding.line) == ("a.dag", 11)
    assert "20 s" in finding.message
    assert "10 of 100" in finding.message


def test_the_check_ends_within_the_jobs_of_one_node() -> None:
    dag = parse_dag(["a.dag"], {"a.dag": "JOB A a.sub\nJOB B a.sub"}.get)
    files = {"a.sub": parse_submit_file("executable = x$(Process)\nqueue 1000", file="a.sub")}
    seconds = count()

    (finding,), _ = run(dag, files, (), deadline=Deadline(lambda: next(seconds), 20))

    assert next(seconds) < 25
    assert finding.line == 2


def test_names_of_files_that_are_too_many_are_not_compared(monkeypatch) -> None:
    monkeypatch.setattr(node_checks, "_MAX_NAME_CHARACTERS", 1_000)
    text = "executable = job.sh\ntransfer_input_files = $(x)\nqueue"
    lines = [f'JOB N{n} a.sub\nVARS N{n} x="i{n}"' for n in range(20)]

    assert len(check("\n".join(lines[:10]), a=text)[0]) == 10
    assert check("\n".join(lines), a=text) == ([], [])
