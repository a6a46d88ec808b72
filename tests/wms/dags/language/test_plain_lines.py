"""Plain lines that are read thousands at once are read as they are one by one, faults included."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wms.dags.language import parser, plain_lines
from wms.dags.language.parser import parse_dag
from wms.dags.language.size_limits import SizeLimits
from wms.dags.language.spec import DagSpec

_NAMES = st.sampled_from([f"n{number}" for number in range(8)])
_RARE_NAMES = st.sampled_from(
    ["n0", "child", "CHILD", "ALL_NODES", "S", "Parent", "a+b", "x" * 300]
)
_WORDS = st.one_of(_NAMES, _NAMES, _NAMES, _RARE_NAMES)
_LISTS = st.lists(_WORDS, min_size=1, max_size=3).map(" ".join)
_KEYS = st.sampled_from(["k", "k", "k", "K", "+A", "queue", ".", "k2"])
_VALUES = st.sampled_from(["1", "", "a b", "it's", "$(JOB)", "$$(X)", "ü", r"\"", "a\x0bb"])
_PAIRS = st.lists(st.builds('{}="{}"'.format, _KEYS, _VALUES), min_size=1, max_size=2).map(" ".join)
_JOBS = st.builds(
    "JOB {} {}".format, _WORDS, st.sampled_from(["a.sub", "b.sub", "../c", "{", "@=e"])
)
_PLAIN = st.one_of(
    _JOBS,
    st.builds("VARS {} {}".format, _WORDS, _PAIRS),
    st.builds("PARENT {} CHILD {}".format, _LISTS, _LISTS),
)
_OTHER = st.one_of(
    st.builds("JOB {} a.sub {}".format, _NAMES, st.sampled_from(["DONE", "NOOP", "DIR d", "\\"])),
    st.sampled_from(
        [
            "", " ", "# JOB n0 a.sub", "}", "@e", "SPLICE S s.dag", "INCLUDE i.dag", "}",
            "FINAL F f.sub", "SUBMIT-DESCRIPTION a.sub {", 'VARS ALL_NODES k="9"',
            "RETRY ALL_NODES 2", "PARENT n0", 'VARS n0 APPEND k="1"', "WEAK PARENT n0 CHILD n1",
            "\tjob n1\ta.sub \r", "# \\", "\\",
        ]
    ),
)  # fmt: skip


@st.composite
def _texts(draw: st.DrawFn) -> str:
    """Runs of plain lines with others in between; often as programs write them."""
    count = draw(st.integers(0, 8))
    lines = [f"JOB n{number} a.sub" for number in range(count)]
    lines += [f'VARS n{number} k="{number}"' for number in range(draw(st.integers(0, count)))]
    lines += [f"PARENT n{n - 1} CHILD n{n}" for n in range(1, draw(st.integers(0, count)))]
    for line in draw(st.lists(st.one_of(_PLAIN, _PLAIN, _OTHER), max_size=8)):
        lines.insert(draw(st.integers(0, len(lines))), line)
    end = draw(st.sampled_from(["\n", "\n", " \r\n"]))
    return (
        draw(st.sampled_from(["", "\ufeff"])) + end.join(lines) + draw(st.sampled_from(["", end]))
    )


@pytest.mark.slow
@given(_texts(), _texts(), st.sampled_from([SizeLimits(), SizeLimits(max_nodes=6, max_arcs=4)]))
# By Python 3.11.2 the beginning of the last line was once taken for a part of the run.
@example("JOB n0 a.sub\nJOB n1 a.sub\nJOB n0 {", "", SizeLimits())
def test_runs_of_plain_lines_are_read_as_their_lines_are_one_by_one(
    text: str, spliced: str, limits: SizeLimits
) -> None:
    files = {"case.dag": text, "s.dag": spliced, "i.dag": 'VARS n1 k="1"\nPARENT n0 CHILD n1\n'}

    def parsed() -> DagSpec:
        return parse_dag(["case.dag"], files.get, limits=limits)

    with mock.patch.object(plain_lines, "_LEAST_LINES", 1):
        at_once = parsed()
    with mock.patch.object(parser, "plain_runs", return_value=()):
        one_by_one = parsed()
    assert at_once == one_by_one
    assert list(at_once.nodes) == list(one_by_one.nodes)
