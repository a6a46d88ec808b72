"""The table of HTCondor's commands in the reference says of each what the code does with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wms.jobs.description.commands import (
    FAMILIES,
    FIELDS,
    KNOWN,
    OTHERWISE,
    SYNONYMS,
    WITHOUT_EFFECT,
    command_warning,
)

_TABLE = Path("docs/reference/submit-commands.md").read_text()
_ROWS = dict(re.findall(r"^\| `([a-z0-9_]+)` \| (same|other|refused) \|", _TABLE, re.MULTILINE))
#: Of the manual of `condor_submit`, by its sections; those of other universes are families.
_OF_THE_MANUAL = """
arguments environment error executable getenv input log log_xml notification notify_user output
priority queue universe rank request_cpus request_disk request_memory request_gpus require_gpus
requirements gpus_minimum_capability gpus_maximum_capability gpus_minimum_memory
gpus_minimum_runtime erase_output_and_error_on_restart should_transfer_files skip_filechecks
stream_error stream_input stream_output transfer_executable transfer_input_files
transfer_output_files transfer_checkpoint_files preserve_relative_paths transfer_output_remaps
when_to_transfer_output transfer_plugins output_destination public_input_files
allowed_execute_duration allowed_job_duration hold keep_claim_idle leave_in_queue
next_job_start_delay on_exit_hold on_exit_hold_reason on_exit_hold_subcode on_exit_remove
max_retries retry_until success_exit_code checkpoint_exit_code periodic_hold periodic_hold_reason
periodic_hold_subcode periodic_release periodic_remove periodic_vacate checkpoint_destination
container_image container_target_dir docker_image docker_network_type docker_pull_policy
docker_override_entrypoint container_service_names transfer_container accounting_group
accounting_group_user concurrency_limits concurrency_limits_expr copy_to_spool coresize
cron_day_of_month cron_day_of_week cron_hour cron_minute cron_month cron_prep_time cron_window
dagman_log deferral_prep_time deferral_time deferral_window description email_attributes
image_size initialdir job_ad_information_attrs job_batch_name batch_name job_lease_duration
job_machine_attrs want_graceful_removal kill_sig kill_sig_timeout load_profile loghistory
manifest match_list_length job_max_vacate_time machine_count max_idle max_materialize
max_transfer_input_mb max_transfer_output_mb nice_user noop_job noop_job_exit_code
noop_job_exit_signal remove_kill_sig remote_initialdir rendezvousdir run_as_owner stack_size
submit_event_notes ulog_execute_attrs use_oauth_services want_io_proxy x509userproxy
use_x509userproxy env prio stdin stdout stderr shell suspend_job_at_exec append_files starter_debug
""".split()  # noqa: SIM905


def test_the_table_and_the_code_know_the_same_commands() -> None:
    assert _ROWS.keys() - {"queue"} == KNOWN


@pytest.mark.parametrize("name", _OF_THE_MANUAL)
def test_the_table_has_each_command_of_the_manual(name: str) -> None:
    assert name in _ROWS


def test_the_table_says_what_becomes_of_each_command() -> None:
    for name, here in _ROWS.items():
        known = SYNONYMS.get(name, name)
        if name == "queue":
            continue
        expected = {
            "same": known in FIELDS,
            "other": known in FIELDS | OTHERWISE.keys(),
            "refused": known in WITHOUT_EFFECT,
        }
        assert expected[here], name


def test_what_is_refused_is_told() -> None:
    for name, here in _ROWS.items() - {("queue", "other")}:
        is_told = bool(command_warning(name))
        assert is_told == (here == "refused"), name


def test_the_table_has_each_family() -> None:
    for begin in FAMILIES:
        assert f"| `{begin}` |" in _TABLE
