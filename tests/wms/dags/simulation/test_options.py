from __future__ import annotations

from dataclasses import fields

import pytest

from wms.core.errors import InvalidInput
from wms.dags.language.spec import RunOptions
from wms.dags.rescue.rescue_files import read_resumption
from wms.dags.simulation.options import Trigger, read_options


def test_options_of_the_engine_get_its_names():
    options = read_options({"reset_retries_upon_rescue": False, "stork_max_attempts": 2})

    assert options.run_options == {"reset_retries": False, "data_attempts": 2}


def test_options_of_a_run_have_the_names_that_they_have_in_the_api():
    given = {each.name: each.default for each in fields(RunOptions)}

    assert read_options(given).run_options == given
    assert read_options({"resume": 3}).resumption == read_resumption("3")
    assert read_options({"resume": "afresh"}).resumption.is_fresh
    assert read_options({"save_point": "A.save"}).resumption.save_point == "A.save"


def test_where_a_run_begins_from_is_read():
    options = read_options({"auto_rescue": False, "do_rescue_from": 2, "no_update": True})

    assert not options.resumption.takes_newest
    assert options.resumption.rescue_number == 2
    assert options.keeps_files


def test_triggers_name_a_start():
    options = read_options({"halt_when": "A.start", "kill_when": "S+B.start@2"})

    assert options.triggers == (Trigger("halt", "A", 0), Trigger("kill", "S+B", 2))


@pytest.mark.parametrize(
    "given",
    [
        {"max_job": 1},
        {"force": 1},
        {"resume": True},
        {"do_rescue_from": True},
        {"halt_when": "A"},
        {"halt_when": ".start"},
        {"kill_when": "A.start@x"},
        {"extra_dags": "b.dag"},
    ],
)
def test_what_is_no_option_is_refused(given: dict[str, object]):
    with pytest.raises(InvalidInput) as refused:
        read_options(given)

    assert refused.value.findings[0].field == f"option {next(iter(given))}"
