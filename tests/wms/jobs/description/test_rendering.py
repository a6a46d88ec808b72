"""The jobs of a node: what its description, its VARS and its moment make of it."""

from __future__ import annotations

from typing import Any

import htcondor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wms.jobs.description.test_queue_statement import Folder
from wms.jobs.description import rendering
from wms.jobs.description.queue_statement import MAX_JOBS
from wms.jobs.description.rendering import (
    CannotRender,
    Identity,
    NodeContext,
    Renderer,
    SiteValues,
)
from wms.jobs.description.submit_file import from_dict, parse_submit_file
from wms.jobs.specs import CLUSTER_MARK, JobSpec


def render(text: str, *, files: Folder | None = None, **context: Any) -> list[JobSpec]:
    parsed = parse_submit_file(f"executable = job.sh\n{text}", file="a.sub")
    assert parsed.findings == []
    given = {"node_name": "A", "dag_id": 7, **context}
    renderer = Renderer(from_dict(parsed.as_dict()), Identity("alice"), SiteValues(), files=files)
    return renderer.jobs(NodeContext(**given))


def arguments(text: str, **context: Any) -> list[str]:
    (spec,) = render(f"{text}\nqueue", **context)
    return list(spec.arguments)


def test_the_last_assignment_of_a_name_counts_wherever_it_stands() -> None:
    text = "x = 1\narguments = $(x) $(y:none)\nx = 2"

    assert arguments(text) == ["2", "none"]


def test_vars_stand_before_the_description_unless_they_are_appended() -> None:
    text = "x = file\narguments = $(x) $(y)"

    assert arguments(text, variables={"x": "dag", "y": "dag"}) == ["file", "dag"]
    assert arguments(text, appended={"x": "dag", "y": "dag"}) == ["dag", "dag"]
    assert arguments(text, variables={"y": "1"}, appended={"Y": "2"}) == ["file", "2"]


def test_an_appended_value_may_use_what_it_replaces() -> None:
    plain, own = "x = file\narguments = $(x)", "x = $(x)-file\narguments = $(x)"

    assert arguments(plain, appended={"x": "$(x)-$(JOB)"}) == ["file-A"]
    assert arguments(own, variables={"x": "dag"}) == ["dag-file"]


def test_what_dagman_always_gives_can_be_used_in_descriptions_and_in_vars() -> None:
    told = arguments(
        "arguments = $(JOB) $(node) $(RETRY) $(DAGManJobId) $(DAG_STATUS) $(FAILED_COUNT)"
        " $(DAG_PARENT_NAMES) $(x)",
        retry_number=2,
        dag_status=2,
        failed_count=3,
        parent_names=lambda: ["P", "Q"],
        variables={"x": "$(JOB)-$(RETRY)-$(DAG_PARENT_NAMES)"},
    )

    assert told == ["A", "A", "2", "7", "2", "3", "P,Q", "A-2-P,Q"]


def test_the_names_of_parents_are_asked_for_only_where_they_are_used() -> None:
    def parents() -> list[str]:
        raise AssertionError("nobody wants to know")

    assert arguments("arguments = $(JOB)", parent_names=parents) == ["A"]


def test_vars_may_give_a_command_that_the_description_does_not() -> None:
    (spec,) = render("queue", variables={"request_memory": "2G", "Arguments": "$(JOB) x"})

    assert (spec.needs.memory_mb, spec.arguments) == (2048, ("A", "x"))
    (spec,) = render("request_memory = 1G\nqueue", variables={"request_memory": "2G"})
    assert spec.needs.memory_mb == 1024
    (spec,) = render("request_memory = 1G\nqueue", appended={"request_memory": "2G"})
    assert spec.needs.memory_mb == 2048


def test_attributes_of_vars_follow_the_same_order() -> None:
    text = '+Kind = "file"\nqueue'

    (spec,) = render(text, variables={"+kind": '"dag"', "+Seed": "$(x)", "x": "5"})
    assert (spec.attributes["Kind"], spec.attributes["Seed"]) == ('"file"', "5")
    (spec,) = render(text, appended={"+kind": '"dag"', "+Tags": '"cvmfs"'})
    assert (spec.attributes.get("Kind"), spec.attributes["kind"]) == (None, '"dag"')
    assert spec.needs.tags == ("cvmfs",)


def test_a_job_knows_its_node_its_dag_and_its_retry() -> None:
    (spec,) = render("x = 1\narguments = $(x)\nnotification = never\nqueue", retry_number=1)

    assert spec.attributes == {
        "DAGNodeName": "A",
        "DAGManJobId": 7,
        "DAGManNodeRetry": 1,
    }


def test_jobs_of_a_list_know_their_place() -> None:
    text = "arguments = $(ProcId) $(Process) $(Step) $(Row) $(ItemIndex) $(f) $(v)\n"

    specs = render(text + "queue 2 f in (a, b)\nv = late\nqueue", variables={"v": "$(Process)"})

    assert [spec.arguments for spec in specs] == [
        ("0", "0", "0", "0", "0", "a", "0"),
        ("1", "1", "1", "0", "0", "a", "1"),
        ("2", "2", "0", "1", "1", "b", "2"),
        ("3", "3", "1", "1", "1", "b", "3"),
        ("4", "4", "0", "0", "0", "late"),
    ]


def test_items_come_from_files_of_the_workspace() -> None:
    files = Folder(list_txt="a 1\nb 2\n")

    specs = render("arguments = $(x)$(n)\nqueue x, n from list.txt", files=files)

    assert [spec.arguments for spec in specs] == [("a1",), ("b2",)]


def test_jobs_that_do_not_differ_are_made_once() -> None:
    specs = render("arguments = $(JOB)\nqueue 1000")

    assert len(specs) == 1000
    assert all(spec is specs[0] for spec in specs)


def test_the_number_of_the_cluster_is_filled_in_when_the_job_is_stored() -> None:
    (spec,) = render("output = $(Cluster).$(Process).out\nqueue")

    assert spec.stdout_name == f"{CLUSTER_MARK}.0.out"
    assert spec.mentions_cluster


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queue 0", "its queue statements make no job"),
        ("queue 6000\nqueue 6000", f"a node has at most {MAX_JOBS} jobs"),
        ("queue x from gone.txt", "there is no file gone.txt"),
        ("queue $(n)", "not a number of jobs"),
        ("arguments = $(a)\na = $(b)\nb = $(a)\nqueue", "a macro uses itself"),
        ("universe = parallel\nqueue", "a job has one pilot, and cannot span several nodes"),
        ("universe = vanila\nqueue", "did you mean vanilla?"),
        ("max_retries = many\nqueue", "max_retries is not a whole number: many"),
        ("success_exit_code = x\nqueue", "success_exit_code is not a whole number: x"),
        ('periodic_hold = regexp($(q), x)\nq = "a"\nqueue', "could become too large"),
        ("request_disk = much\nqueue", "request_disk is not an amount"),
        ("initialdir = ../x\nqueue", "leads outside of the workspace"),
        ('arguments = "\'a"\nqueue', "a single quote is not closed"),
    ],
)
def test_what_cannot_be_made_a_job_of_is_told_with_the_node(text: str, message: str) -> None:
    with pytest.raises(CannotRender, match="node A: ") as caught:
        render(text, files=Folder())

    assert message in str(caught.value)


def test_files_are_named_from_the_directory_of_the_node_and_the_initial_one() -> None:
    (spec,) = render(
        "initialdir = run_$(JOB)\ntransfer_input_files = in.txt\noutput = out\nqueue", directory="d"
    )

    assert (spec.executable, spec.directory) == ("d/job.sh", "d/run_A")
    assert (spec.input_files, spec.stdout_name) == (("in.txt",), "out")


@pytest.mark.parametrize(
    ("change", "memory_mb"),
    [
        (("request_memory", "*", "2"), 8192),
        (("request_memory", "*", "1.5"), 4608),
        (("Request_Memory", "=", "7G"), 7168),
    ],
)
def test_a_retry_changes_commands_once_for_every_retry(
    change: tuple[str, str, str], memory_mb: int
) -> None:
    text = "request_memory = 2048\nqueue"

    (first,) = render(text, changes=[change])
    (third,) = render(text, changes=[change], retry_number=2)

    assert (first.needs.memory_mb, third.needs.memory_mb) == (2048, memory_mb)


def test_a_retry_may_change_what_macros_and_vars_give() -> None:
    text = "request_memory = $(mb)G\nallowed_execute_duration = 60\nqueue"
    changes = [("request_memory", "*", "2"), ("allowed_execute_duration", "*", "3")]

    (spec,) = render(text, variables={"mb": "3"}, changes=changes, retry_number=1)
    assert (spec.needs.memory_mb, spec.wall_limit_s) == (6144, 180)
    (spec,) = render("queue", changes=[("request_memory", "=", "1G")], retry_number=1)
    assert spec.needs.memory_mb == 1024
    with pytest.raises(CannotRender, match="request_cpus\\*=2 "):
        render("queue", changes=[("request_cpus", "*", "2")], retry_number=1)


def test_sites_that_a_node_avoids_are_banned_for_it() -> None:
    (spec,) = render('+BannedSites = "x"\nqueue', avoided_sites=["site-b", "x"])

    assert spec.needs.banned_sites == ("site-b", "x")


def test_what_decides_about_the_job_goes_with_it() -> None:
    (spec,) = render(
        "max_retries = 3\nretry_until = ExitCode == $(x:4)\nperiodic_hold = NumHolds < 1\n"
        "request_disk = 3000000\npriority = 4\nqueue"
    )

    assert spec.periodic == {"retry_until": "ExitCode == 4", "hold": "NumHolds < 1"}
    assert (spec.max_retries, spec.needs.disk_mb, spec.priority) == (3, 2930, 4)


@pytest.mark.parametrize(
    ("lines", "retries"),
    [
        ("retry_until = 4", 2),
        ("success_exit_code = 7", 2),
        ("success_exit_code = 7\nmax_retries = 0", 0),
        ("success_exit_code =", 0),
    ],
)
def test_other_commands_for_retries_alone_allow_as_many_as_htcondor(
    lines: str, retries: int
) -> None:
    (spec,) = render(f"{lines}\nqueue")

    assert spec.max_retries == retries


_VALUES = st.text(alphabet="ab$()x: ", max_size=6).filter(lambda text: "$" not in text)


@given(_VALUES, _VALUES, st.booleans())
def test_values_in_two_layers_give_what_htcondor_gives_when_they_are_written_in_order(
    outer: str, own: str, is_appended: bool
) -> None:
    # Given
    lines = [f"x = {outer}"], [f"x = {own}", "result = [$(x)|$(x:d)|$(y:$(x))]"]
    first, last = reversed(lines) if is_appended else lines
    text = "\n".join([*first, *last])

    # When
    layer = "appended" if is_appended else "variables"
    (spec,) = render(
        "\n".join([*lines[1], "output = $(result)\nqueue"]), **{layer: {"x": outer.strip()}}
    )

    # Then
    expected = htcondor2.Submit(f"executable = a\n{text}\nqueue\n").expand("result")
    assert spec.stdout_name == expected.strip()


def test_all_values_of_a_node_share_one_bound() -> None:
    variables = {"x": "y" * 50_000} | {f"v{n}": "$(x)" for n in range(20)}

    with pytest.raises(CannotRender, match="steps"):
        render("arguments = $(v1)\nqueue", variables=variables)
    with pytest.raises(CannotRender, match="steps"):
        render("arguments = " + "$(x)" * 1_000 + "\nqueue", variables={"x": "y" * 100_000})


def test_every_job_of_a_list_adds_to_the_bound_of_its_node() -> None:
    text = "arguments = $(v) $(Item)\nqueue in (" + " ".join(map(str, range(1_000))) + ")"

    assert len(render(text, variables={"v": "$(JOB)" + "x" * 5_000})) == 1_000


def test_the_attributes_of_a_job_are_bounded() -> None:
    (spec,) = render(f"+Note = {'x' * 65_000}\nqueue")
    assert len(spec.attributes["Note"]) == 65_000

    for text in (f"note = {'x' * 66_000}", f"+A = {'x' * 33_000}\n+B = {'x' * 33_000}"):
        with pytest.raises(CannotRender, match="65536"):
            render(f"{text}\nqueue")


def test_the_text_of_all_jobs_of_a_node_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "MAX_TEXT_OF_NODE", 10_000)
    text = f"arguments = {'x' * 900}\n"
    assert len(render(f"{text}queue 5\nqueue 5")) == 10

    for queues in ("queue 12", "queue 6\nqueue 6"):
        with pytest.raises(CannotRender, match="10000 characters"):
            render(text + queues)


def test_functions_are_computed_for_every_job_of_a_list() -> None:
    text = """
        files = a, b ,c
        output = $Fn(file)_$INT(Process,%03d)$Fx(file)
        arguments = $CHOICE(Step,files) $(z) $INT(RETRY)
        z = $INT(y,%02d)
        queue 2 file in (in/x.txt in/y.dat)
    """

    specs = render(text, variables={"y": "$(JOB)0 * 2 + 1"} | {"job0": "3"}, node_name="3")

    assert [spec.stdout_name for spec in specs] == [
        "x_000.txt", "x_001.txt", "y_002.dat", "y_003.dat",
    ]  # fmt: skip
    assert [list(spec.arguments) for spec in specs] == [
        ["a", "61", "0"], ["b", "61", "0"], ["a", "61", "0"], ["b", "61", "0"],
    ]  # fmt: skip


def test_what_is_drawn_differs_among_jobs_and_nodes_and_stays_over_retries() -> None:
    text = "seed = $RANDOM_INTEGER(0,999999999)\narguments = $(seed) $(seed) $(v)\nqueue 3"
    variables = {"v": "$RANDOM_CHOICE(a,b,c,d,e,f,g,h)$RANDOM_INTEGER(0,999999)"}

    specs = render(text, variables=variables)
    again = render(text, variables=variables, retry_number=1)
    others = render(text, variables=variables, node_name="B")
    elsewhere = render(text, variables=variables, dag_id=8)

    drawn = [spec.arguments for spec in (*specs, *others, *elsewhere)]
    assert [spec.arguments for spec in again] == [spec.arguments for spec in specs]
    assert len(set(drawn)) == len({third for _, _, third in drawn}) == 9
    assert all(first == second for first, second, _ in drawn)


def test_a_function_that_cannot_be_computed_is_told_with_its_command() -> None:
    with pytest.raises(CannotRender, match=r"request_memory: \$INT"):
        render("request_memory = $INT(size)\nqueue", variables={"size": "large"})
