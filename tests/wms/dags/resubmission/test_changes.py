"""Nodes that are done and that an edit changes."""

from __future__ import annotations

import io

import pytest

from wms.dags.resubmission.changes import Effect, effect_of
from wms.dags.resubmission.versions import Version, read_version

_SUB = "executable = run.sh\narguments = $(n)\ntransfer_input_files = in/$(n).txt\nqueue\n"
_DAG = """JOB A a.sub
JOB B b.sub
JOB C a.sub
JOB D b.sub
PARENT A CHILD B
PARENT C CHILD D
VARS A n="1"
VARS C n="2"
SCRIPT PRE D check.sh $JOB
RETRY A 1
"""
_FILES = {
    "w.dag": _DAG,
    "a.sub": _SUB,
    "b.sub": "# after a\nexecutable = /bin/true\nqueue\n",
    "run.sh": "#!/bin/sh\n",
    "check.sh": "#!/bin/sh\n",
    "in/1.txt": "one\n",
    "in/2.txt": "two\n",
}


def _version(files: dict[str, str]) -> Version:
    streams = {name: io.BytesIO(text.encode()) for name, text in files.items()}
    version = read_version(["w.dag"], streams)
    assert not version.dag.findings
    return version


def _effect(done: str, **edits: tuple[str, str]) -> Effect:
    names = {name.replace("_", "."): change for name, change in edits.items()}
    new = {name: text.replace(*names.get(name, ("", ""))) for name, text in _FILES.items()}
    edited = {name for name in names if name != "w.dag"}
    return effect_of(_version(_FILES), _version(new), edited=edited, done=done.split())


@pytest.mark.parametrize(
    ("edits", "changed", "following"),
    [
        ({"w_dag": ('n="1"', 'n="9"')}, "A", "B"),
        ({"a_sub": ("queue", "request_memory = 2 GB\nqueue")}, "A C", "B D"),
        ({"b_sub": ("# after a\n", "# nothing else\n\n")}, "", ""),
        ({"w_dag": ("RETRY A 1", "RETRY A 5\nPRIORITY C 3\nCATEGORY B big")}, "", ""),
        ({"w_dag": ("SCRIPT PRE D check.sh $JOB", "SCRIPT PRE D check.sh now")}, "D", ""),
        ({"check_sh": ("#!/bin/sh", "#!/bin/bash")}, "D", ""),
        ({"run_sh": ("#!/bin/sh", "#!/bin/bash")}, "A C", "B D"),
        ({"w_dag": ("PARENT C CHILD D", "PARENT C B CHILD D")}, "D", ""),
        ({"w_dag": ("PARENT C", "JOB N b.sub\nPARENT N CHILD C\nPARENT C")}, "C", "D"),
        ({"w_dag": ("PARENT A CHILD B\n", "")}, "", ""),
    ],
)  # fmt: skip
def test_an_edit_changes_the_nodes_that_run_something_else_and_what_follows_them(
    edits: dict[str, tuple[str, str]], changed: str, following: str
) -> None:
    effect = _effect("A B C D", **edits)

    assert (effect.changed, effect.following) == (tuple(changed.split()), tuple(following.split()))
    assert effect.gone == ()


def test_an_edited_input_changes_the_nodes_whose_macros_may_name_it() -> None:
    same = _version(_FILES)

    effect = effect_of(same, same, edited={"in/1.txt"}, done=["C", "D"])

    assert effect == Effect(changed=("C",), following=("D",))


def test_only_nodes_that_are_done_are_told_of_and_those_that_are_gone() -> None:
    effect = _effect("A X", a_sub=("queue", "request_memory = 2 GB\nqueue"))

    assert effect == Effect(changed=("A",), gone=("X",))


def test_an_inner_dag_is_changed_by_any_file_that_it_may_read() -> None:
    files = {**_FILES, "w.dag": "SUBDAG EXTERNAL I inner.dag\nJOB A a.sub\nVARS A n=\"1\"\n",
             "inner.dag": "JOB X b.sub\n"}  # fmt: skip
    same = _version(files)

    assert effect_of(same, same, edited={"b.sub"}, done=["I", "A"]).changed == ("I",)
    assert effect_of(same, same, edited=set(), done=["I", "A"]) == Effect()
