"""Directives from submit descriptions, and the faults of each."""

from __future__ import annotations

import pytest

from tests.wms.jobs.description.test_rendering import render
from wms.jobs.description.renderer_inputs import CannotRender


def test_commands_become_directives() -> None:
    (spec,) = render(
        "input = in.$(Process)\ntransfer_output_files = plots, flat/, e\n"
        'transfer_output_remaps = "e = $(JOB).txt; plots/a = b"\nallowed_job_duration = 60\n'
        "allowed_execute_duration = 50\ncheckpoint_exit_code = 85\nhold = true\n"
        "transfer_checkpoint_files = state/\nnotification = Error\nkill_sig_timeout = 5\n"
        "use_oauth_services = Pilotage\nqueue"
    )

    assert spec.directives == {
        "stdin_name": "in.0",
        "output_remaps": {"e": "A.txt", "plots/a": "b"},
        "duration_limit_s": 60,
        "is_held_at_wall_limit": True,
        "checkpoint_exit_code": 85,
        "checkpoint_files": ["state"],
        "notification": "error",
        "is_held": True,
        "kill_grace_s": 5,
        "has_token": True,
    }
    assert (spec.input_files, spec.output_files) == (("in.0",), ("plots", "flat/", "e"))


def test_input_data_are_logical_names_with_the_way_to_reach_them() -> None:
    (spec,) = render("InputData = lfn:/a b, lfn:/c, LFN:/c\ndata_access = Anywhere\nqueue")
    (near,) = render("input_data = lfn:/c\ndata_access = near\nqueue")

    assert spec.directives == {
        "input_data": ["lfn:/a%20b", "lfn:/c"],
        "data_access": "anywhere",
    }
    assert spec.input_files == ()
    assert near.directives == {"input_data": ["lfn:/c"]}


def test_a_description_that_says_nothing_has_none() -> None:
    (spec,) = render("input = /dev/null\nnotification = never\nhold = false\nqueue")

    assert spec.directives is None
    assert spec.input_files == ()


def test_reasons_and_subcodes_go_with_the_expressions() -> None:
    (spec,) = render('periodic_hold = true\nperiodic_hold_reason = "a"\nperiodic_hold_subcode = 7')

    assert spec.periodic == {"hold": "true", "hold_reason": '"a"', "hold_subcode": "7"}


def test_disk_space_and_concurrency_limits_are_needs() -> None:
    (spec,) = render('request_disk = 2G\nconcurrency_limits = "DB:2, sw"\nqueue')

    assert (spec.needs.disk_mb, spec.needs.limits) == (2048, ("db:2", "sw"))


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("input = /etc/passwd", "input"),
        ("use_oauth_services = pilotage, box", "use_oauth_services"),
        ("input = https://x.org/a", "input"),
        ("transfer_output_remaps = a = b", "transfer_output_remaps"),
        ("transfer_output_files = a\ntransfer_output_remaps = a = ../b", "transfer_output_remaps"),
        (
            "transfer_output_files = a, b\ntransfer_output_remaps = a=c; b=c",
            "transfer_output_remaps",
        ),
        ("transfer_output_files = a/\ntransfer_output_remaps = a/ = b", "transfer_output_remaps"),
        ("checkpoint_exit_code = 0\ntransfer_checkpoint_files = a", "checkpoint_exit_code"),
        ("checkpoint_exit_code = 85", "checkpoint_exit_code"),
        ("transfer_checkpoint_files = a", "transfer_checkpoint_files"),
        ("notification = sometimes", "notification"),
        ("hold = perhaps", "hold"),
        ("kill_sig_timeout = 99999", "kill_sig_timeout"),
        ("allowed_job_duration = long", "allowed_job_duration"),
        ("concurrency_limits = a:b:c", "concurrency_limits"),
        ("input_data = run7.root", "input_data"),
        ("input_data = https://x.org/run7.root", "input_data"),
        ("input_data = lfn:/a/../b", "input_data"),
        ("input_data = " + ", ".join(f"lfn:/{n}" for n in range(501)), "input_data"),
        ("data_access = nearby", "data_access"),
    ],
)
def test_a_bad_value_is_a_fault_of_its_command(lines: str, name: str) -> None:
    with pytest.raises(CannotRender) as caught:
        render(f"{lines}\nqueue")

    assert name in caught.value.names
