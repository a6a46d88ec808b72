from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wms.dags.language.parsing import values_of, warnings, well_read
from wms.dags.language.spec import AbortRule, NodeSpec, Retry, ScriptSpec, TimeLimits, Tolerance
from wms.dags.states import ScriptKind

NODES = "JOB A a\nJOB B b\nSUBDAG EXTERNAL C c.dag\nDATA D d\nFINAL F f\nSERVICE S s\n"


def node_with(line: str) -> NodeSpec:
    return well_read(f"JOB A a\n{line}").nodes["A"]


@pytest.mark.parametrize(
    ("line", "retry"),
    [
        ("RETRY A 0", Retry(0)),
        ("RETRY A 3\r", Retry(3)),
        ("RETRY A 2 UNLESS-EXIT -9", Retry(2, -9)),
        ("RETRY A 2 AVOID-SITES unless_exit 5", Retry(2, 5, True)),
        (
            'RETRY A 2 WITH Request_Memory*=1.5 +Tags="\\"a b\\"" request_cpus=4',
            Retry(
                2,
                changes=(
                    ("request_memory", "*", "1.5"),
                    ("+Tags", "=", '"a b"'),
                    ("request_cpus", "=", "4"),
                ),
            ),
        ),
        ("RETRY A 1 AVOID-SITES WITH x=1", Retry(1, None, True, (("x", "=", "1"),))),
        ("RETRY A 1\nRETRY A 5 UNLESS-EXIT 2\nRETRY A 4", Retry(4)),
    ],
)
def test_a_node_is_tried_again(line: str, retry: Retry) -> None:
    assert node_with(line).retry == retry


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("ABORT-DAG-ON A 3", AbortRule(3)),
        ("ABORT-DAG-ON A -9 RETURN 0", AbortRule(-9, 0)),
        ("ABORT-DAG-ON A 3 return 255", AbortRule(3, 255)),
    ],
)
def test_a_node_may_end_the_dag(line: str, rule: AbortRule) -> None:
    assert node_with(line).abort == rule


@pytest.mark.parametrize(
    ("line", "tolerance"),
    [
        ("TOLERANCE A 2", Tolerance(2)),
        ("TOLERANCE A 10% WAIT", Tolerance(10, True, False)),
        ("TOLERANCE A 0 FAIL-FAST", Tolerance(0)),
        ("TOLERANCE A 15 %", Tolerance(15, True)),
        ("TOLERANCE A 15 % wait", Tolerance(15, True, False)),
        ("TOLERANCE A 150%", Tolerance(150, True)),
    ],
)
def test_some_jobs_of_a_list_may_fail(line: str, tolerance: Tolerance) -> None:
    assert node_with(line).tolerance == tolerance


@pytest.mark.parametrize(
    ("line", "limits"),
    [
        ("TIMEOUT A QUEUE 60", TimeLimits(60)),
        ("TIMEOUT A run 5 queue 7", TimeLimits(7, 5)),
        ("TIMEOUT A RUN 5\nTIMEOUT A QUEUE 7", TimeLimits(7)),
    ],
)
def test_a_node_may_have_limits_of_time(line: str, limits: TimeLimits) -> None:
    assert node_with(line).time_limits == limits


def test_a_node_has_a_priority_a_category_and_more() -> None:
    node = node_with("PRIORITY A -3\nCATEGORY A c\nPRE_SKIP A 255\nALWAYS-RUN-POST A\nDONE A")

    assert (node.priority, node.category, node.pre_skip) == (-3, "c", 255)
    assert node.always_runs_post
    assert node.is_done


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("SAVE_POINT_FILE A", "save_files/A-case.dag.save"),
        ("SAVE_POINT_FILE A here", "save_files/here"),
        ("SAVE_POINT_FILE A ./here", "here"),
        ("SAVE_POINT_FILE A d/here", "d/here"),
    ],
)
def test_a_node_may_have_a_save_point(line: str, path: str) -> None:
    assert node_with(line).save_point == path


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("RETRY all_nodes 1", lambda node: node.retry is not None),
        ("SCRIPT PRE ALL_NODES x", lambda node: node.scripts is not None),
        ("PRE_SKIP ALL_NODES 1", lambda node: node.pre_skip == 1),
        ('VARS ALL_NODES x="1"', lambda node: node.variables is not None),
        ("PRIORITY ALL_NODES 1", lambda node: node.priority == 1),
        ("CATEGORY ALL_NODES c", lambda node: node.category == "c"),
        ("ABORT-DAG-ON ALL_NODES 1", lambda node: node.abort is not None),
        ("TOLERANCE ALL_NODES 1", lambda node: node.tolerance is not None),
        ("TIMEOUT ALL_NODES RUN 1", lambda node: node.time_limits is not None),
        ("ALWAYS-RUN-POST ALL_NODES", lambda node: node.always_runs_post),
    ],
)
def test_all_nodes_are_those_with_a_place_in_the_graph(line: str, changed) -> None:
    nodes = well_read(NODES + line).nodes

    assert [name for name, node in nodes.items() if changed(node)] == ["A", "B", "C", "D"]


lines = st.tuples(st.sampled_from(["A", "B", "ALL_NODES"]), st.integers(0, 9))


@given(st.lists(lines, max_size=8))
def test_the_later_line_wins_whether_it_is_for_one_node_or_for_all(said) -> None:
    expected: dict[str, int] = {}
    for name, value in said:
        expected |= dict.fromkeys(["A", "B"] if name == "ALL_NODES" else [name], value)

    dag = well_read(
        "JOB A a\nJOB B b\n"
        + "\n".join(f'RETRY {name} {value}\nVARS {name} x="{value}"' for name, value in said)
    )

    assert {name: node.retry.count for name, node in dag.nodes.items() if node.retry} == expected
    assert {
        name: int(values_of(dag, name)["x"]) for name, node in dag.nodes.items() if node.variables
    } == expected


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ('VARS A x="1" y="two words"', {"x": "1", "y": "two words"}),
        ('VARS A quote="say \\"hi\\" \\\\"', {"quote": 'say "hi" \\'}),
        ("VARS A x=1 y='2 3'", {"x": "1", "y": "2 3"}),
        ('VARS A x = "1" y= "2"', {"x": "1", "y": "2"}),
        ('VARS A PREPEND x="1"', {"x": "1"}),
        ('VARS A prepend="1"', {"prepend": "1"}),
        ('VARS A +Tags="\\"gpu\\"" my.x="1"', {"+Tags": '"gpu"', "my.x": "1"}),
        ('VARS A x="it\'s" y="a=b"', {"x": "it's", "y": "a=b"}),
        ('VARS A x="" y=1', {"x": "", "y": "1"}),
        ("VARS A x = 1 y\t=\t2 z= 'a b'", {"x": "1", "y": "2", "z": "a b"}),
        ("VARS A x= y=2", {"x": "y=2"}),
        ("VARS A x=a=b=c", {"x": "a=b=c"}),
        # Quotes inside of a value are its own; a blank ends it unless it stands between two.
        ('VARS A x="a "b" c" y=1', {"x": 'a "b" c', "y": "1"}),
        ("VARS A x=\"a 'b' c\"", {"x": "a 'b' c"}),
        ("VARS A x='a \"b\" c'", {"x": 'a "b" c'}),
        ('VARS A x=a"b c"d', {"x": 'a"b c"d'}),
        ('VARS A x=a"b\\"c"d', {"x": 'a"b"c"d'}),
        ('VARS A x="1"y="2"', {"x": '1"y="2'}),
        ("VARS A x=don't y=can't", {"x": "don't y=can't"}),
        ("VARS A x=c:\\dir", {"x": "c:\\dir"}),
        ('VARS A x="a\\tb"', {"x": "atb"}),
        ('VARS A\tx="1"\ty="2"\r', {"x": "1", "y": "2"}),
        ('VARS "A" x="1"', {"x": "1"}),
        ('VARS A x="$(JOB)-$(RETRY)"', {"x": "$(JOB)-$(RETRY)"}),
        ('VARS A x="1" y="0"\nVARS A x="2"', {"x": "2", "y": "0"}),
        ('VARS A Part="1"\nVARS A part="2"', {"part": "2"}),
    ],
)
def test_variables_are_read(line: str, values: dict[str, str]) -> None:
    assert values_of(well_read(f"JOB A a\n{line}"), "A") == values


def test_variables_know_their_places_and_are_found_by_names_without_case() -> None:
    variables = node_with('VARS A Part="1"\nVARS A APPEND y="2"').variables

    assert variables is not None
    assert variables.keys() == {"part", "y"}
    assert variables["part"].location == ("case.dag", 2)
    assert [each.is_appended for each in variables.values()] == [False, True]


def test_what_is_appended_wins_whatever_is_prepended_later() -> None:
    variables = node_with('VARS A APPEND x="1"\nVARS A x="2"\nVARS A y="1"\nVARS A APPEND y="2"')

    assert {name: each.value for name, each in (variables.variables or {}).items()} == {
        "x": "1",
        "y": "2",
    }


def test_a_variable_that_is_given_again_is_warned_of_unless_it_was_for_all_nodes() -> None:
    text = 'JOB A a\nVARS ALL_NODES x="0"\nVARS A x="1"\nVARS A X="2"\nVARS A X="3"'

    first, second = warnings(text)

    assert (first[1], second[1]) == (4, 5)
    assert "line 3" in first[2]
    assert "line 4" in second[2]


def test_a_script_is_read_with_everything() -> None:
    node = node_with("SCRIPT debug o.log stderr DEFER 4 60 POST A /bin/sh -c 'a b' $JOB x$JOB")

    assert node.scripts == {
        ScriptKind.POST: ScriptSpec(
            "/bin/sh",
            ("-c", "'a", "b'", "$JOB", "x$JOB"),
            ("case.dag", 2),
            4,
            60,
            "o.log",
            "STDERR",
        )
    }


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("SCRIPT PRE A n.sh don't", ["n.sh", "don't"]),
        ('SCRIPT PRE A n.sh "a b', ["n.sh", '"a', "b"]),
        ('script pre "A" n.sh\ta  \\  b\\ ', ["n.sh", "a", "\\", "b"]),
        ("SCRIPT PRE A 'n.sh' a=b = c", ["'n.sh'", "a=b", "=", "c"]),
        ("SCRIPT PRE A n.sh a\xa0b", ["n.sh", "a\xa0b"]),
        ("SCRIPT PRE A n.sh # no comment", ["n.sh", "#", "no", "comment"]),
    ],
)
def test_the_words_of_a_script_are_separated_by_blanks_alone(line: str, command: list[str]) -> None:
    scripts = node_with(line).scripts

    assert scripts is not None
    assert [scripts[ScriptKind.PRE].executable, *scripts[ScriptKind.PRE].arguments] == command


def test_a_node_has_one_script_of_a_kind_the_last_one() -> None:
    scripts = node_with("SCRIPT PRE A x 1\nSCRIPT POST A y\nscript pre A x 2\nSCRIPT HOLD A z")

    assert scripts.scripts is not None
    assert {kind: each.arguments for kind, each in scripts.scripts.items()} == {
        ScriptKind.PRE: ("2",),
        ScriptKind.POST: (),
        ScriptKind.HOLD: (),
    }


def test_a_script_for_all_nodes_is_found_in_the_directory_of_each() -> None:
    dag = well_read("JOB A a DIR d\nJOB B b\nSCRIPT PRE ALL_NODES ./x.sh\nSCRIPT POST A ../y.sh")

    assert all(node.scripts for node in dag.nodes.values())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("SCRIPT PRE A x $NOTHING", "$NOTHING is no macro of scripts: it stays as it is"),
        ("SCRIPT PRE A x $return", "$return means nothing in a PRE script: it stays as it is"),
    ],
)
def test_a_macro_that_means_nothing_is_warned_of(line: str, message: str) -> None:
    assert warnings(f"JOB A a\n{line}") == [("case.dag", 2, message)]


@pytest.mark.parametrize("kind", ["POST", "HOLD"])
def test_macros_of_jobs_are_known_to_scripts_that_run_after_them(kind: str) -> None:
    macros = (
        "$JOB $node $RETRY $MAX_RETRIES $DAGID $DAG_STATUS $FAILED_COUNT $FUTILE_COUNT $DONE_COUNT "
        "$QUEUED_COUNT $NODE_COUNT $JOBID $CLUSTERID $JOB_COUNT $JOB_ABORT_COUNT $RETURN $SUCCESS "
        "$EXIT_CODES $EXIT_CODE_LIST $EXIT_CODE_COUNTS $PRE_SCRIPT_RETURN $ $1 x$NOTHING"
    )

    text = f"JOB A a\nSCRIPT {kind} A x {macros}"

    assert warnings(text) == []
