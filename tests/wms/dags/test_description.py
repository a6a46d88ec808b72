"""The description of a DAG as a whole: its ad, its group, its limits, when its match is undone."""

from __future__ import annotations

import pytest

from wms.accounting.models import AccountingGroup
from wms.accounting.services import save_group
from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.negotiation.requests import requests_of
from wms.dags.submission.dag_description import read_description


@pytest.fixture
def physics(alice: User, olga: User) -> AccountingGroup:
    group = AccountingGroup(name="physics", quota=0.5)
    save_group(group, actor=Actor.person(olga), members=[alice])
    return group


def faults(submit, text: str) -> tuple[Finding, ...]:
    with pytest.raises(InvalidInput) as caught:
        submit("JOB A step.sub", description_text=text, description_name="group.sub")
    assert not Dag.objects.exists()
    return caught.value.findings


def test_group_limits_and_rematch_are_stored_with_the_dag(submit, physics) -> None:
    text = """\
accounting_group   = Physics
concurrency_limits = "DB:2, sw.matlab"
periodic_rematch   = QueuedSeconds > 7200 && NodesRunning == 0
queue
"""

    dag = submit("JOB A step.sub", description_text=text, description_name="group.sub")

    dag.refresh_from_db()
    assert dag.accounting_group == physics
    assert dag.concurrency_limits == {"db": 2.0, "sw.matlab": 1.0}
    assert dag.rematch_expression == "QueuedSeconds > 7200 && NodesRunning == 0"
    assert dag.ad_attributes == {}


def test_a_dag_without_description_has_none_of_them(submit) -> None:
    dag = submit("JOB A step.sub")

    assert (dag.accounting_group, dag.concurrency_limits, dag.rematch_expression) == (None, {}, "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("accounting_group = chemistry", "accounting_group: there is no group chemistry"),
        ("concurrency_limits = db:0", "the amount of the limit db must be larger than 0"),
        ("concurrency_limits = db:2, db", "concurrency_limits: the limit db is named twice"),
        ("concurrency_limits = $(limits)", "concurrency_limits: expected a limit"),
        ("periodic_rematch = QueuedSeconds > ", "periodic_rematch: not a ClassAd expression"),
        ("periodic_rematch = $(when)", "periodic_rematch: macros cannot be used"),
        ("periodic_rematch = 7200", "periodic_rematch: it is 7200, which is neither true"),
        ('periodic_rematch = eval("x")', "periodic_rematch: eval cannot be used"),
        ("Requirements = 5", "can never be true: whatever the site is, it is 5, which is neither"),
        ('Requirements = "abc"', 'whatever the site is, it is "abc"'),
        ("Requirements = undefined", "whatever the site is, it is undefined"),
        ("Requirements = error", "whatever the site is, it is an error"),
        ("Requirements = Memory > 5 && false", "whatever the site is, it is false"),
        ("Rank = $(speed)", "Rank: macros cannot be used in the ad of a DAG"),
        ('+Owner = "root"', "Owner is set by Pilotage"),
        ('+lastmatchname3 = "UW"', "lastmatchname3 is set by Pilotage"),
        ("+A = B\n+B = A", "attributes refer to each other in a circle: A -> B -> A"),
    ],
)
def test_a_fault_is_told_with_its_line(submit, line: str, words: str) -> None:
    (fault,) = faults(submit, f"# a DAG\n\n{line}\nqueue\n")

    assert words in fault.message
    assert (fault.file, fault.line) == ("group.sub", 3)


def test_who_is_no_member_cannot_submit_in_the_name_of_a_group(submit, physics, charlie) -> None:
    with pytest.raises(InvalidInput, match="charlie"):
        submit(
            "JOB A step.sub",
            description_text="accounting_group = physics",
            description_name="group.sub",
            owner=charlie,
        )


def test_all_faults_are_told_at_once(submit) -> None:
    text = "accounting_group = x\nconcurrency_limits = db:0\nRequirements = 5\nRank = (\n"

    assert [fault.line for fault in faults(submit, text)] == [1, 2, 4]


def test_a_rematch_may_be_ruled_out_for_a_dag(submit) -> None:
    text = "periodic_rematch = false\nRequirements = LastMatchName0 =!= TARGET.Name\n"

    dag = submit("JOB A step.sub", description_text=text, description_name="group.sub")

    assert dag.rematch_expression == "false"


def test_names_that_differ_in_case_are_one_attribute(alice: User) -> None:
    text = "+kind = 1\n+Kind = 2\n+requirements = false\nRequirements = TARGET.Kind == MY.Kind\n"

    description, findings = read_description(text, file="group.sub", owner=alice)

    assert not findings
    assert description.attributes == {"Kind": "2", "Requirements": "TARGET.Kind == MY.Kind"}


def test_whatever_the_negotiator_sets_is_reserved(submit, physics, alice: User) -> None:
    dag = submit(
        "JOB A step.sub", description_text="accounting_group=physics", description_name="x.sub"
    )
    (request,) = requests_of(Dag.objects.filter(pk=dag.pk))

    for name in [*request.values, "LastMatchName0"]:
        _, findings = read_description(f"+{name} = 1", file="group.sub", owner=alice)
        assert [finding.message.split()[0] for finding in findings] == [name]


def test_a_dollar_that_ends_a_pattern_is_no_macro(submit) -> None:
    text = 'Requirements = regexp("^uw-.*$", TARGET.Name)\n'

    dag = submit("JOB A step.sub", description_text=text, description_name="group.sub")

    assert dag.ad_attributes["Requirements"] == 'regexp("^uw-.*$", TARGET.Name)'


def test_a_misspelt_command_is_refused_with_what_was_meant(submit) -> None:
    (fault,) = faults(submit, "universe = vanilla\nRequirments = TARGET.Memory > 5\n")

    assert fault.message.startswith("requirments ")
    assert fault.message.endswith(" requirements?")
    assert fault.line == 2
