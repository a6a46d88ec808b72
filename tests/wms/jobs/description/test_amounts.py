"""Numbers of submit descriptions: units, expressions, and the attributes they may refer to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wms.jobs.description.test_rendering import render
from wms.core.errors import InvalidInput
from wms.dags.submission.submit import submission_warnings
from wms.jobs.description.rendering import CannotRender, Identity, NodeContext, Renderer
from wms.jobs.description.submit_file import parse_submit_file
from wms.jobs.specs import JobSpec


def job(*lines: str, **context: Any) -> JobSpec:
    (spec,) = render("\n".join([*lines, "queue"]), **context)
    return spec


# What HTCondor's `condor_submit -dry-run` says of the same texts.
@pytest.mark.parametrize(
    ("text", "memory_mb"),
    [
        ("2 * 1024", 2048), ("2 GB", 2048), ("2G", 2048), ("2g", 2048), ("1.5G", 1536),
        ("1.1G", 1127), ("1024.4", 1025), ("512K", 1), ("1025K", 2), (".5G", 512), ("5.G", 5120),
        ("+5", 5), ("1e3", 1000), ("0", 0), ("2T", 2_097_152), ("max({1,2})*100", 200),
        ("MY.RequestCpus * 1024", 3072), ("RequestDisk / 1024", 4), ("Parts * 10", 50),
        ("ifThenElse(isUndefined(MemoryUsage), 1024, MemoryUsage)", 1024), ("", 0),
        ("1024 * (DAGManNodeRetry + NumJobStarts + 1)", 3072), ("$(x)G * 2", None),
    ],
)  # fmt: skip
def test_memory_is_an_amount_or_an_expression(text: str, memory_mb: int | None) -> None:
    lines = ["x = 1", "request_cpus = 1+2", "request_disk = 4M", "+Parts = Half * 2", "+Half = 2.5"]

    def made() -> JobSpec:
        return job(*lines, f"request_memory = {text}", retry_number=2)

    if memory_mb is None:
        with pytest.raises(CannotRender, match="request_memory"):
            made()
    else:
        assert made().needs.memory_mb == memory_mb
        assert made().needs.cores == 3


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("request_disk = 100 * 1024", "disk_mb", 100),
        ("request_disk = 1.1M", "disk_mb", 2),
        ("RequestDisk = 3G", "disk_mb", 3072),
        ("priority = 5+4", "priority", 9),
        ("prio = 17 / 10.0", "priority", 1),
        ("priority =", "priority", 1),
        ("priority = -100 * 2", "priority", 0),
        ("priority = 850", "priority", 10),
        ("max_retries = 1+1", "max_retries", 2),
        ("allowed_execute_duration = 60 * 60", "wall_limit_s", 3600),
        ("success_exit_code = -1 - 1", "periodic", {"success_exit_code": "-2"}),
    ],
)
def test_every_number_may_be_an_expression(line: str, name: str, value: object) -> None:
    spec = job(line)
    assert getattr(spec.needs if name == "disk_mb" else spec, name) == value


def test_a_number_may_differ_among_the_jobs_of_a_node_and_among_nodes() -> None:
    specs = render(
        "priority = 9 - ProcId * 2\nrequest_memory = $(mb)\nqueue 3",
        variables={"mb": "10 * (ProcId + 1)"},
    )
    other = job("request_memory = Size * 2", variables={"+Size": "7"})

    assert [spec.priority for spec in specs] == [9, 7, 5]
    assert [spec.needs.memory_mb for spec in specs] == [10, 20, 30]
    assert other.needs.memory_mb == 14
    assert job("request_memory = Size * 2", "+Size = 3").needs.memory_mb == 6


def test_what_a_retry_multiplies_is_the_value_of_the_expression() -> None:
    changes = [("request_memory", "*", "2")]

    spec = job("request_memory = 2 * 512 + 1", retry_number=1, changes=changes)

    assert spec.needs.memory_mb == 2050


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "request_memory = 2 * TARGET.Memory",
            "request_memory: not a number: 2 * TARGET.Memory; before the job runs, nothing is known"
            " of memory",
        ),
        ("request_memory = MemoryUsage * 2", "nothing is known of memoryusage"),
        ("request_cpus = undefined", "request_cpus is not a whole number: undefined"),
        ("request_cpus = 1 + \"a\"", 'request_cpus: not a number: 1 + "a"'),
        ("request_cpus = 1 / 0", "request_cpus: not a number: 1 / 0"),
        ("request_cpus = -1", "request_cpus is not a whole number: -1"),
        ("request_memory = RequestCpus + RequestMemory", "refer to each other in a circle"),
        ("request_memory = 100B", "request_memory is not an amount of memory: 100B"),
        ("request_memory = 2 TiB", "request_memory is not an amount of memory: 2 TiB"),
        ("request_memory = size(\"" + "x" * 10_000 + "\")", "request_memory: "),
        ("priority = \"3\"", 'priority: not a number: "3"'),
    ],
)  # fmt: skip
def test_what_gives_no_number_is_told_before_the_dag_is_stored(
    submit, line: str, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit("JOB A step.sub", files={"step.sub": f"executable = step.sh\n{line}\nqueue\n"})

    (finding,) = caught.value.findings
    assert message in finding.message
    assert (finding.file, finding.line) == ("step.sub", 2)


def test_what_depends_on_what_is_not_known_yet_is_not_looked_at() -> None:
    text = "\n".join(
        [
            "executable = a", "request_memory = DAGManJobId * 2", "request_cpus = $$(Cpus) + 1",
            "priority = $RANDOM_INTEGER(1,9) * 2", "request_disk = $INT(Cluster) + 1",
            "queue $RANDOM_INTEGER(1,3)",
        ]
    )  # fmt: skip

    (fields,) = Renderer(parse_submit_file(text, file="a.sub"), Identity("alice")).fields(
        NodeContext("A", 0), most=1
    )

    assert (fields["needs"].memory_mb, fields["needs"].disk_mb) == (0, 0)
    assert "priority" not in fields


def test_a_priority_beyond_the_range_is_taken_with_a_warning(submit) -> None:
    files = {
        "step.sub": "executable = step.sh\npriority = 850\nqueue\n",
        "low.sub": "executable = step.sh\nprio = -20\nqueue\n",
    }

    dag = submit("JOB A step.sub\nJOB B low.sub", files=files)

    low, high = submission_warnings(dag)
    assert ((low.file, low.line), (high.file, high.line)) == (("low.sub", 2), ("step.sub", 2))
    assert "-20 counts as 0" in low.message
    assert "850 counts as 10" in high.message
