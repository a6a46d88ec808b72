"""Warnings cost little, whatever was sent."""

from __future__ import annotations

import time

import pytest

from matching.task_queues.needs import Needs
from wms.core.errors import InvalidInput
from wms.dags.language.parser import parse_dag
from wms.dags.language.size_limits import MAX_FINDINGS
from wms.dags.language.spec import DagSpec, NodeSpec
from wms.dags.models import Dag
from wms.dags.states import NodeKind
from wms.dags.submission.description_warnings import dag_warnings
from wms.jobs.description.submit_file import MAX_COMMANDS, parse_submit_file
from wms.sites.vocabulary import Vocabulary

NOTHING = Vocabulary(
    dict.fromkeys(
        (
            "sites", "banned_sites", "queues", "platforms", "submit_pools", "middlewares", "tags",
            "setup",
        ),
        frozenset(),
    )
)  # fmt: skip


def needs_with(tags: list[str], count: int) -> list[tuple[Needs, NodeSpec]]:
    """Different needs with these tags, each of a node of its own."""
    return [
        (
            Needs("alice", memory_mb=number, tags=tuple(tags)),
            NodeSpec(f"N{number}", NodeKind.JOB, "a.sub", "a.dag", 1),
        )
        for number in range(count)
    ]


def test_unknown_words_are_no_longer_looked_for_when_there_are_enough() -> None:
    wanted = iter(needs_with([f"tag{number}" for number in range(MAX_FINDINGS)], 1000))
    submit_file = parse_submit_file("executable = a\n+Tags = 1", file="a.sub")

    found = dag_warnings(DagSpec(), {"a.sub": submit_file}, wanted, NOTHING)

    assert len(found) == MAX_FINDINGS
    assert len(list(wanted)) > 990


def test_words_that_thousands_of_needs_share_are_told_once_each_and_soon() -> None:
    wanted = needs_with([f"tag{number}" for number in range(100)], 2000)
    lines = "".join(f"+Name{number} = 1\n" for number in range(900))
    submit_file = parse_submit_file(f"executable = a\n+Tags = 1\n{lines}", file="a.sub")

    began_s = time.process_time()
    found = dag_warnings(DagSpec(), {"a.sub": submit_file}, wanted, NOTHING)

    assert time.process_time() - began_s < 1
    assert {(each.file, each.line) for each in found} == {("a.sub", 2)}
    assert len(found) == 100


def test_a_name_that_is_used_as_a_macro_in_any_case_may_be_like_one_that_has_a_meaning() -> None:
    text = "executable = $(TAGS:x)\narguments = $(request_cpu_s)\ntags = 3\nrequest_cpu = 4"
    submit_file = parse_submit_file(text, file="a.sub")

    found = dag_warnings(DagSpec(), {"a.sub": submit_file}, [], NOTHING)

    (warning,) = found
    assert (warning.file, warning.line) == ("a.sub", 4)
    assert warning.message.startswith("request_cpu ")


def test_a_submit_description_with_very_many_commands_is_refused(submit) -> None:
    lines = [f"name{number} = $(name{number + 1})" for number in range(MAX_COMMANDS)]

    with pytest.raises(InvalidInput) as caught:
        submit("JOB A step.sub", files={"step.sub": "\n".join(["executable = x", *lines])})

    (finding,) = caught.value.findings
    assert (finding.file, finding.line) == ("step.sub", 1001)
    assert "1000 commands" in finding.message
    assert not Dag.objects.exists()


def test_very_many_names_in_vars_cost_little() -> None:
    text = "".join(f'JOB N{n} a.sub\nVARS N{n} +Tags{n}="1"\n' for n in range(5000))
    dag = parse_dag(["a.dag"], {"a.dag": text}.get)

    began_s = time.process_time()
    found = dag_warnings(dag, {}, [], NOTHING)

    assert time.process_time() - began_s < 1
    assert len(found) == 100
