"""Imports between modules: none goes round in a circle."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


@pytest.mark.slow
def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside of functions and for type checkers count: they would only hide a circle."""
    graph = grimp.build_graph("portal", "wms", "matching", "client.pilotage_client")
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
