"""What DAGMan itself refuses and accepts, as far as its language goes."""

from __future__ import annotations

import pytest

from tests.wms.dags.language.parsing import read, well_read

DEFECTIVE = {
    "two final nodes": ("JOB A a\nFINAL F f\nFINAL G g", {}, "final", ("case.dag", 3)),
    "final as a child": ("JOB A a\nFINAL F f\nPARENT A CHILD F", {}, "final", ("case.dag", 3)),
    "final as a parent": ("JOB A a\nFINAL F f\nPARENT F CHILD A", {}, "final", ("case.dag", 3)),
    "a cycle": (
        "JOB A a\nJOB B b\nJOB C c\nPARENT A CHILD B\nPARENT B CHILD C\nPARENT C CHILD B",
        {},
        "cycle: B -> C -> B",
        ("case.dag", 5),
    ),
    "a node twice": ("JOB A a\nJOB Alpha b\nJOB Alpha c", {}, "Alpha", ("case.dag", 3)),
    "a reserved name": ("JOB PARENT a", {}, "PARENT", ("case.dag", 1)),
    "a reserved name in small letters": ("JOB child a", {}, "child", ("case.dag", 1)),
    "no children": ("JOB A a\nPARENT A CHILD", {}, "child", ("case.dag", 2)),
    "less than no retries": ("JOB A a\nRETRY A -1", {}, "-1", ("case.dag", 2)),
    "many retries": ("JOB A a\nRETRY A many", {}, "many", ("case.dag", 2)),
    "a high priority": ("JOB A a\nPRIORITY A high", {}, "high", ("case.dag", 2)),
    "a variable without value": ("JOB A a\nVARS A xylo", {}, "xylo", ("case.dag", 2)),
    "a variable called queue": ('JOB A a\nVARS A queue_it="1"', {}, "queue", ("case.dag", 2)),
    "no splice": ("SPLICE S nothing.dag", {}, "nothing.dag", ("case.dag", 1)),
    "final in a splice": ("SPLICE S in.dag", {"in.dag": "FINAL F f"}, "final", ("in.dag", 1)),
    "other numbers of pins": (
        "SPLICE S one.dag\nSPLICE T two.dag\nCONNECT S T",
        {"one.dag": "JOB A a\nPIN_OUT A 1", "two.dag": "JOB A a\nPIN_IN A 1\nPIN_IN A 2"},
        "pin",
        ("case.dag", 3),
    ),
    "a parent of the provisioner": (
        "JOB A a\nPROVISIONER P p\nPARENT A CHILD P",
        {},
        "provisioner",
        ("case.dag", 3),
    ),
    "a comment behind a command": ("JOB A a\nJOB B b # second", {}, "#", ("case.dag", 2)),
}

ACCEPTED = [
    ("PARENT A CHILD B\nRETRY B 1\nJOB B b\nJOB A a", {}),
    ("\n# why\n\n   # why\nJOB A a\n  \tJOB   B\tb\nPARENT A   CHILD B", {}),
    ("job A a\nJob B b\nParent A Child B\nrEtRy B 1 unless-exit 9\nScript pre A x $JOB", {}),
    ("JOB a a\nJOB A a\nPARENT a CHILD A", {}),
    ("JOB A a\nJOB B b\nRETRY ALL_NODES 1\nRETRY B 2", {}),
    ("JOB A a\nSCRIPT POST A x $JOB $RETURN\nSCRIPT DEFER 4 1 POST A x $JOB", {}),
    ("JOB A a\nABORT-DAG-ON A 3 RETURN 0\nRETRY A 5", {}),
    ("FINAL F f", {}),
    ("JOB A a\nFINAL F f NOOP\nSCRIPT PRE F x $JOB\nSCRIPT POST F x $DAG_STATUS", {}),
    ("JOB A a DONE\nJOB B b\nPARENT A CHILD B\nSCRIPT PRE A x", {}),
    ("JOB A a DIR sub1", {}),
    ('JOB A a\nVARS A APPEND x="dag" y="dag"', {}),
    ("JOB A {\n    executable = x\n    # why\n}\nJOB B b\nPARENT A CHILD B", {}),
    ("JOB A common\nSUBMIT-DESCRIPTION common {\n  executable = x\n}", {}),
    ("JOB A a\nCATEGORY A c", {}),
    ("SPLICE S in\nSPLICE T in\nPARENT S CHILD T", {"in": "JOB A a\nJOB B b"}),
    ("SPLICE S in\nJOB A a", {"in": "JOB A a\nRETRY ALL_NODES 1"}),
    (
        "SPLICE S in\nSPLICE T in\nCONNECT S T",
        {"in": "JOB A a\nJOB B b\nPIN_OUT A 1\nPIN_OUT B 2\nPIN_IN A 2\nPIN_IN B 1"},
    ),
    ("JOB A a\nSUBDAG EXTERNAL S inner.dag\nPARENT A CHILD S", {}),
    ("JOB A a\nWEAK PARENT A CHILD B\nJOB B b", {}),
    ("CONFIG my.cfg\nJOB A a", {"my.cfg": "DAGMAN_MAX_JOBS_SUBMITTED = 1\n"}),
    ("# nothing here", {}),
    ("JOB A a\nSCRIPT PRE A x\nPRE_SKIP A 0", {}),
    ("JOB A a\nDATA D d.stork\nJOB B b\nPARENT A CHILD D\nPARENT D CHILD B", {}),
]


@pytest.mark.parametrize("case", DEFECTIVE.values(), ids=DEFECTIVE.keys())
def test_what_dagman_refuses_is_refused_once_and_at_its_place(case) -> None:
    text, files, message, location = case

    (finding,) = read(text, files).findings

    assert message.lower() in finding.message.lower()
    assert (finding.file, finding.line) == location


@pytest.mark.parametrize(("text", "files"), ACCEPTED)
def test_what_dagman_accepts_is_accepted_without_a_warning(text: str, files) -> None:
    assert well_read(text, files).warnings == []
