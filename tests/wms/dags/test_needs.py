"""What submit descriptions ask for, from their text to the needs of the jobs and the refusals."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from matching.task_queues.needs import BadNeeds, Needs
from wms.core.errors import InvalidInput
from wms.dags.models import Dag
from wms.dags.submission import node_checks
from wms.jobs.description.needs import _evaluated, _read_again, read_needs


def read(
    commands: Mapping[str, str] | None = None,
    segments_s: tuple[int, ...] = (500, 5_000),
    **attributes: str,
) -> Needs:
    return read_needs(
        commands or {}, attributes, owner="alice", group="physics", segments_s=segments_s
    )


def sub(*lines: str) -> dict[str, str]:
    return {"step.sub": "\n".join(["executable = step.sh", *lines, "queue"])}


def test_a_description_can_ask_for_everything_that_there_is() -> None:
    needs = read(
        {
            "request_cpus": "2",
            "request_memory": "1.5 GB",
            "request_gpus": "1",
            "requirements": "Cpus>2&&TARGET.Memory>MY.RequestMemory",
        },
        MaxCpus="8",
        CPUTimeSeconds="20 * 60",
        Sites='"T2_X, T2_Y"',
        BannedSites='{"T2_Z"}',
        Queues='"T2_X/long"',
        Platforms='"linux-x86_64"',
        PilotTypes='"private"',
        SubmitPools='"wms"',
        Middlewares='{"slurm", "htcondor"}',
        Tags='"gpu,cvmfs"',
        Setup='"Certification"',
        JobType='"Merge"',
    )

    requirements = "Cpus > 2 && TARGET.Memory > MY.RequestMemory"
    assert needs == Needs(
        owner="alice",
        owner_group="physics",
        setup="Certification",
        cpu_time_s=5_000,
        cores=2,
        max_cores=8,
        memory_mb=1536,
        gpus=1,
        sites=("T2_X", "T2_Y"),
        banned_sites=("T2_Z",),
        queues=("T2_X/long",),
        platforms=("linux-x86_64",),
        pilot_types=("private",),
        submit_pools=("wms",),
        middlewares=("htcondor", "slurm"),
        tags=("cvmfs", "gpu"),
        job_type="Merge",
        requirements=requirements,
    )


def test_a_description_that_asks_for_nothing_gets_one_core_in_the_first_segment() -> None:
    assert read() == Needs(owner="alice", owner_group="physics", cpu_time_s=500)


def test_attributes_are_written_in_any_case() -> None:
    assert read(SITES='"T2_X"', jobtype='"User"') == read(Sites='"T2_X"', JobType='"User"')


def test_a_job_can_use_as_many_cores_as_it_needs_if_nothing_else_is_said() -> None:
    assert read({"request_cpus": "4"}).max_cores == 4


@pytest.mark.parametrize(
    ("commands", "attributes", "message", "names"),
    [
        (
            {"request_cpus": "4"},
            {"MaxCpus": "2"},
            "request_cpus and +MaxCpus: cores (4) is more than max_cores (2)",
            ("request_cpus", "+MaxCpus"),
        ),
        (
            {},
            {"Sites": '"T2_X"', "BannedSites": '"T2_X"'},
            "+Sites and +BannedSites: sites and banned_sites contradict each other: both name T2_X",
            ("+Sites", "+BannedSites"),
        ),
        (
            {},
            {"Sites": '"T2_X"', "Queues": '"T2_Y/q"'},
            "+Queues and +Sites: queues names only queues of sites that are not in sites",
            ("+Queues", "+Sites"),
        ),
        ({"request_cpus": "0"}, {}, "cores must be from 1 to", ("request_cpus",)),
        ({"request_cpus": "999999999"}, {}, "cores must be from 1 to", ("request_cpus",)),
        ({"request_memory": "99999999 T"}, {}, "memory_mb must be from 0", ("request_memory",)),
        ({"request_gpus": "-1"}, {}, "request_gpus is not a whole number: -1", ("request_gpus",)),
        ({"requirements": "false"}, {}, "requirements can never be true", ("requirements",)),
        ({"requirements": "(a <"}, {}, "not a ClassAd expression", ("requirements",)),
        ({}, {"CPUTimeSeconds": "1.5"}, "+CPUTimeSeconds is not a whole", ("+CPUTimeSeconds",)),
        ({}, {"CPUTimeSeconds": "-1"}, "cpu_time_s must be from 0", ("+CPUTimeSeconds",)),
        ({}, {"MaxCpus": "true"}, "+MaxCpus is not a whole number: true", ("+MaxCpus",)),
        ({}, {"Tags": "gpu"}, '+Tags must be words in quotes, as in "a, b"', ("+Tags",)),
        ({}, {"Tags": '{"gpu", 1}'}, "+Tags must be words in quotes", ("+Tags",)),
        ({}, {"JobType": "User"}, "+JobType must be a text in quotes, not User", ("+JobType",)),
        ({}, {"JobType": '"' + "u" * 65 + '"'}, "+JobType: job_type has more than", ("+JobType",)),
        ({}, {"Tags": 'eval("1")'}, "+Tags: eval", ("+Tags",)),
        ({}, {"Tags": 'regexp("(a+)+$", "b") ? "a" : "b"'}, "take too long", ("+Tags",)),
        ({}, {"Tags": '"' + "x" * 8192 + '"'}, "+Tags has more than 8192 char", ("+Tags",)),
        ({}, {"MaxCpus": "sum({" + "size(Owner)," * 40 + "1})"}, "too large", ("+MaxCpus",)),
        ({}, {"PilotTypes": '"secret"'}, "secret is not one of generic, priv", ("+PilotTypes",)),
    ],
)
def test_what_nobody_could_meet_is_refused_with_the_names_that_are_at_fault(
    commands: dict[str, str], attributes: dict[str, str], message: str, names: tuple[str, ...]
) -> None:
    with pytest.raises(BadNeeds) as caught:
        read(commands, **attributes)

    assert message in str(caught.value)
    assert caught.value.fields == names


def test_what_was_written_at_great_length_is_not_remembered() -> None:
    _read_again.cache_clear()

    with pytest.raises(BadNeeds):
        read({"requirements": "x" * 20_000})
    read({"request_memory": "7" + " " * 20_000})
    assert _read_again.cache_info().currsize == 0

    read({"request_memory": "7"})
    assert _read_again.cache_info().currsize == 1


def test_an_attribute_that_nodes_have_in_common_is_evaluated_once() -> None:
    tags = '{"common-to-all"}'
    read({"request_memory": "1"}, Tags=tags)
    evaluated = _evaluated.cache_info()

    read({"request_memory": "2"}, Tags=tags)

    assert _evaluated.cache_info().misses == evaluated.misses


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (["request_cpus = 4", "+maxcpus = 2"], 2, "request_cpus and +MaxCpus: "),
        (["", '+Sites = "X"', '+BannedSites = "X"'], 3, "+Sites and +BannedSites: "),
        (["priority = 2 * TARGET.Kflops"], 2, "priority: not a number: 2 * TARGET.Kflops; before"),
        (["priority = high"], 2, "priority is not a whole number: high"),
        (["allowed_execute_duration = long"], 2, "allowed_execute_duration is not a whole"),
        (["arguments = $$(Name)", "+Tags = gpu"], 3, "+Tags must be words in quotes"),
        (["requirements = Cpus > $(none) 1 &&"], 2, "requirements: not a ClassAd expression"),
    ],
)
def test_contradictions_are_told_once_with_the_line_of_the_submit_file(
    submit, lines: list[str], line: int, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit("JOB A step.sub\nJOB B step.sub\n", files=sub(*lines))

    told = {(f.file, f.line, f.message.removeprefix("node A: ")) for f in caught.value.findings}
    assert any(message in each for _, _, each in told)
    assert {(file, at) for file, at, _ in told} == {("step.sub", line)}
    assert not Dag.objects.exists()


def test_a_value_that_is_a_macro_alone_is_told_with_the_line_of_the_vars(submit) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit(
            'JOB A step.sub\nJOB B step.sub\nVARS A n="1"\nVARS B n="no"',
            files=sub("request_cpus = $(n)"),
        )

    (finding,) = caught.value.findings
    assert (finding.file, finding.line) == ("test.dag", 4)
    assert finding.message.startswith("request_cpus ")


def test_a_value_that_has_a_macro_in_it_is_told_with_the_node(submit) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit('JOB A step.sub\nVARS A n="no"', files=sub("request_cpus = 1$(n)"))

    (finding,) = caught.value.findings
    assert (finding.file, finding.line) == ("step.sub", 2)
    assert finding.message.startswith("node A: request_cpus ")


def test_an_attribute_from_the_dag_file_is_told_with_the_line_of_its_vars(submit) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit('JOB A step.sub\nVARS A APPEND +Tags="gpu"', files=sub('+Tags = "x"'))

    (finding,) = caught.value.findings
    assert (finding.file, finding.line) == ("test.dag", 2)
    assert finding.message.startswith("+Tags ")


def test_ten_thousand_nodes_with_one_fault_are_told_of_it_once(submit) -> None:
    nodes = "\n".join(f"JOB N{n} step.sub" for n in range(10_000))

    with pytest.raises(InvalidInput) as caught:
        submit(nodes, files=sub("request_cpus = 0"))

    assert len(caught.value.findings) == 1


def test_the_different_needs_of_a_dag_are_limited(submit, monkeypatch) -> None:
    monkeypatch.setattr(node_checks, "MAX_DIFFERENT_NEEDS", 2)
    text = "\n".join(f'JOB N{n} step.sub\nVARS N{n} mb="{n % 3}"' for n in range(6))

    with pytest.raises(InvalidInput, match="at most 2"):
        submit(text, files=sub("request_memory = $(mb)"))
