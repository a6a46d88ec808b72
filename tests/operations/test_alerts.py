"""Alert rules and the dashboard name metrics and labels that are there; each alert has its page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from portal.metrics.counts import REGISTRY
from portal.metrics.installation import Installation

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = ROOT / "docs/operations"
#: Labels that Prometheus adds by itself, and the metric that it makes.
_OF_PROMETHEUS = {"instance", "job", "le"}
_FUNCTIONS = {
    "absent", "histogram_quantile", "increase", "max", "min", "rate", "sum", "topk",
}  # fmt: skip
_WORDS = {"and", "by", "on", "or"}
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


@dataclass(frozen=True, slots=True)
class Expression:
    """Metrics and labels that an expression of Prometheus names."""

    #: With the labels that each is selected by.
    metrics: list[tuple[str, list[str]]]
    functions: set[str]
    #: By which results are grouped and joined.
    grouped_by: set[str]
    is_balanced: bool


def read(text: str) -> Expression:
    """Names in an expression; there are no others in our files than this tells apart."""
    bare = re.sub(r'"[^"]*"', '""', text)
    depth = 0
    for sign in bare:
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            break
    groups = re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", bare)
    bare = re.sub(r"\b(by|on)\s*\([^)]*\)", " ", bare)
    bare = re.sub(r"\[[0-9]+[smhd]\]", "", bare)
    functions = set(re.findall(r"\b([a-z_]+)\s*\(", bare)) - _WORDS
    rest = re.sub(r"\b[a-z_]+\s*\(", "(", bare)
    selected = re.findall(r"\b([a-z_][a-z0-9_]*)\b(?:\s*\{([^}]*)\})?", rest)
    metrics = [
        (name, re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)", labels))
        for name, labels in selected
        if name not in _WORDS
    ]
    grouped_by = {label.strip() for group in groups for label in group.split(",")} - {""}
    return Expression(metrics, functions, grouped_by, depth == 0)


def _rules() -> list[dict[str, object]]:
    groups = yaml.safe_load((OPERATIONS / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _expressions() -> Iterator[tuple[str, str]]:
    for rule in _rules():
        yield str(rule["alert"]), str(rule["expr"])
    for panel in json.loads((OPERATIONS / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.fixture
def known(db: None, settings: Any) -> dict[str, set[str]]:
    """The labels of each metric, by its name in expressions, of an installation with a feeder."""
    feeder = {"FEED_BELOW": 1, "FEED_PROGRAM": "/bin/true"}
    placement = settings.PILOTAGE["PLACEMENT"] | feeder
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": placement}
    families = [(each, set(each._labelnames)) for each in Installation().collect()]
    names = {family.name: labels for family, labels in families}
    for collector in list(REGISTRY._collector_to_names):
        [family] = collector.describe()
        for suffix in _SUFFIXES[family.type]:
            names[family.name + suffix] = set(collector._labelnames)
    return {**names, "up": set()}


def test_all_that_is_named_is_there(known: dict[str, set[str]]) -> None:
    wrong = []
    for place, text in _expressions():
        found = read(text)
        labels = set().union(*(known.get(name, set()) for name, _ in found.metrics))
        if not found.is_balanced or not found.metrics or found.functions - _FUNCTIONS:
            wrong.append((place, "form"))
        wrong += [(place, name) for name, _ in found.metrics if name not in known]
        wrong += [
            (place, label)
            for name, by in found.metrics
            for label in by
            if label not in known.get(name, set()) | _OF_PROMETHEUS
        ]
        wrong += [(place, each) for each in found.grouped_by - labels - _OF_PROMETHEUS]

    assert wrong == []


@pytest.mark.parametrize(
    ("text", "metrics", "is_balanced"),
    [
        ('max by (a) (b{c="d(e"}) > 3', [("b", ["c"])], True),
        ('rate(b{c!~"x",d="y"}[5m]) / on () group_of', [("b", ["c", "d"]), ("group_of", [])], True),
        ("max(b", [("b", [])], False),
    ],
)
def test_expressions_are_taken_apart(
    text: str, metrics: list[tuple[str, list[str]]], is_balanced: bool
) -> None:
    found = read(text)

    assert (found.metrics, found.is_balanced) == (metrics, is_balanced)


def test_every_metric_is_on_the_dashboard_or_in_an_alert(known: dict[str, set[str]]) -> None:
    named = {name for _, text in _expressions() for name, _ in read(text).metrics}
    shown = {re.sub(r"_(bucket|count|sum)$", "", name) for name in named}

    assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in known} - shown == set()


def test_every_alert_has_a_page_of_its_own_that_names_it() -> None:
    pages = {str(rule["alert"]): ROOT / rule["annotations"]["runbook"] for rule in _rules()}  # type: ignore[index]

    assert sorted(pages.values()) == sorted((OPERATIONS / "runbooks").glob("*.md"))
    assert [alert for alert, page in pages.items() if f"`{alert}`" not in page.read_text()] == []
    assert len(pages) == len(_rules())


def test_every_page_says_what_it_means_what_to_look_at_and_what_to_do() -> None:
    for page in (OPERATIONS / "runbooks").glob("*.md"):
        heads = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
        assert heads == ["What it means", "What to look at", "What to do"], page.name


def test_expressions_of_pages_name_what_is_there(known: dict[str, set[str]]) -> None:
    for page in (OPERATIONS / "runbooks").glob("*.md"):
        named = set(re.findall(r"\bpilotage_[a-z_]+", page.read_text()))
        assert named - set(known) == set(), page.name


def test_every_alert_has_an_example_of_its_own(known: dict[str, set[str]]) -> None:
    """`promtool test rules` tries them; here they are compared with what there is."""
    examples = yaml.safe_load((OPERATIONS / "alerts-tests.yaml").read_text())["tests"]
    tried = {
        rule["alertname"]: rule["exp_alerts"]
        for example in examples
        for rule in example["alert_rule_test"]
        if rule["exp_alerts"]
    }
    series = {each["series"] for example in examples for each in example["input_series"]}

    assert set(tried) == {str(rule["alert"]) for rule in _rules()}
    for text in series:
        [(name, labels)] = read(text).metrics
        assert set(labels) <= known[name] | _OF_PROMETHEUS, text
