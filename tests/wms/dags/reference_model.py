"""Reference model of what becomes of a DAG, and random DAGs with random outcomes to compare with.

It knows neither time nor order: what a node does depends only on how its parents ended and on the
outcomes drawn for its parts, so it is computed node by node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st


@dataclass(slots=True)
class ModelNode:
    """A node: its parents (and whether the arc is weak), its options, the codes of its parts.

    Of each part, `codes` has one for each run; the last one repeats.
    """

    name: str
    parents: dict[str, bool] = field(default_factory=dict)
    retries: int = 0
    unless_exit: int | None = None
    pre_skip: int | None = None
    processes: int = 1
    is_done: bool = False
    is_noop: bool = False
    always_runs_post: bool = False
    codes: dict[str, list[int]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The node as a DAG file has it."""
        options = (" NOOP" if self.is_noop else "") + (" DONE" if self.is_done else "")
        lines = [f"JOB {self.name} {self.processes}.sub{options}"]
        for kind in ("pre", "post"):
            if kind in self.codes:
                lines.append(f"SCRIPT {kind.upper()} {self.name} /bin/true $RETURN")
        unless = f" UNLESS-EXIT {self.unless_exit}" if self.unless_exit is not None else ""
        lines.append(f"RETRY {self.name} {self.retries}{unless}")
        if self.pre_skip is not None:
            lines.append(f"PRE_SKIP {self.name} {self.pre_skip}")
        if self.always_runs_post:
            lines.append(f"ALWAYS-RUN-POST {self.name}")
        lines += [
            f"{'WEAK ' if weak else ''}PARENT {parent} CHILD {self.name}"
            for parent, weak in self.parents.items()
        ]
        return lines

    def code(self, part: str, run: int) -> int:
        """What the part gives at its run of this number."""
        codes = self.codes[part]
        return codes[min(run, len(codes) - 1)]


@dataclass(slots=True)
class Result:
    """How a node ended, and how often its parts were run."""

    state: str
    runs: dict[str, int] = field(default_factory=dict)


def outcome(nodes: list[ModelNode]) -> dict[str, Result]:
    """What becomes of each node; they come in an order in which parents are before children."""
    results: dict[str, Result] = {}
    for node in nodes:
        ends = {parent: results[parent].state for parent in node.parents}
        if node.is_done:
            results[node.name] = Result("done")
        elif all(
            end == "done" or (end == "failed" and node.parents[parent])
            for parent, end in ends.items()
        ):
            results[node.name] = _run(node)
        else:
            results[node.name] = Result("futile")
    return results


def _run(node: ModelNode) -> Result:
    result = Result("failed", {"pre": 0, "job": 0, "post": 0})
    for _ in range(node.retries + 1):
        code, is_skipped = _attempt(node, result.runs)
        if code == 0 or is_skipped:
            result.state = "done"
            return result
        if code == node.unless_exit:
            return result
    return result


def _attempt(node: ModelNode, runs: dict[str, int]) -> tuple[int, bool]:
    """The code that decides the attempt, and whether PRE made the node done."""
    code = 0
    if "pre" in node.codes:
        code = node.code("pre", runs["pre"])
        runs["pre"] += 1
        if code != 0 and code == node.pre_skip:
            return code, True
        if code != 0 and not (node.always_runs_post and "post" in node.codes):
            return code, False
    if code == 0 and not node.is_noop:
        code = node.code("job", runs["job"])
        runs["job"] += 1
    if "post" in node.codes:
        code = node.code("post", runs["post"])
        runs["post"] += 1
    return code, False


def _codes() -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from([0, 0, 1, 2]), min_size=1, max_size=4)


@st.composite
def dags(draw: st.DrawFn) -> list[ModelNode]:
    """A DAG of up to seven nodes."""
    nodes: list[ModelNode] = []
    for number in range(draw(st.integers(1, 7))):
        before = [node.name for node in nodes]
        parents = draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else []
        codes = {"job": draw(_codes())}
        for part in ("pre", "post"):
            if draw(st.booleans()):
                codes[part] = draw(_codes())
        node = ModelNode(
            name=f"n{number}",
            parents={parent: draw(st.booleans()) for parent in parents},
            retries=draw(st.integers(0, 2)),
            unless_exit=draw(st.sampled_from([None, None, 2])),
            pre_skip=draw(st.sampled_from([None, 2])) if "pre" in codes else None,
            processes=draw(st.sampled_from([1, 1, 3])),
            is_done=draw(st.integers(0, 9)) == 0,
            is_noop=draw(st.integers(0, 9)) == 0,
            always_runs_post=draw(st.booleans()),
            codes=codes,
        )
        nodes.append(node)
    return nodes
