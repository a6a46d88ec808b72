"""The faces never write: what changes something is a service of the domain."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

PORTAL = Path(settings.BASE_DIR, "portal")
#: What people keep of the portal itself has its services there.
SERVICES = PORTAL / "personal" / "services.py"
#: What these remove are keys of the broker.
BROKER = {PORTAL / "config" / "broker.py", PORTAL / "config" / "leases.py"}
#: Methods that write wherever they are called.
WRITES = frozenset(
    {
        *("save", "bulk_create", "bulk_update", "get_or_create", "update_or_create", "delete"),
        *("asave", "abulk_create", "abulk_update", "aget_or_create", "aupdate_or_create"),
        *("adelete", "set_password", "apply_to_dags", "apply_to_nodes"),
        *("delay", "apply_async", "send_task"),
    }
)
#: Methods of other things as well (dictionaries, clients): they write when called on a queryset.
WRITES_ON_QUERYSETS = frozenset({"create", "acreate", "update", "aupdate"})
QUERYSETS = frozenset(
    {
        *("objects", "_default_manager", "_base_manager", "all", "filter", "exclude"),
        *("get_queryset", "select_for_update", "order_by", "select_related", "prefetch_related"),
    }
)


def _names_in_chain(node: ast.expr) -> Iterator[str]:
    """The names in `a.b(...).c`, from the end."""
    while True:
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute):
            yield node.attr
            node = node.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return


def writes_in(source: str) -> list[int]:
    """The lines in which a method is called that writes."""
    calls = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    )
    return [
        call.lineno
        for call in calls
        if call.func.attr in WRITES
        or (
            call.func.attr in WRITES_ON_QUERYSETS
            and QUERYSETS & set(_names_in_chain(call.func.value))
        )
    ]


@pytest.mark.parametrize(
    "source",
    [
        "dag.save()",
        "Dag.objects.create(name='x')",
        "Dag.objects.filter(pk=1).exclude(state='x').update(state='y')",
        "Dag.objects.order_by('pk')[:5].update(state='y')",
        "Dag._default_manager.bulk_create([])",
        "dag.delete()",
        "advance.delay(1)",
    ],
)
def test_a_write_is_recognised(source: str) -> None:
    assert writes_in(source) == [1]


@pytest.mark.parametrize(
    "source", ["facts.update(a=1)", "Dag.objects.filter(pk=1)", "factory.create()"]
)
def test_what_is_no_write_is_let_through(source: str) -> None:
    assert writes_in(source) == []


@pytest.mark.slow
def test_the_portal_writes_nothing() -> None:
    found = [
        f"{path.relative_to(PORTAL.parent)}:{line}"
        for path in sorted(PORTAL.rglob("*.py"))
        if path not in {SERVICES, *BROKER}
        for line in writes_in(path.read_text(encoding="utf-8"))
    ]

    assert found == [], "call a service of wms instead"
