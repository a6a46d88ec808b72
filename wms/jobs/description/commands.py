"""Table of submit commands: those with a meaning here, and warnings about others.

Also warnings about values that are not followed, synonyms of commands, and the universes whose jobs
can run.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from matching.task_queues.weighted_draws import MAX_JOB_PRIORITY
from wms.jobs.description.container_images import COMMANDS as IMAGES
from wms.jobs.description.needs import COMMANDS as NEEDS
from wms.jobs.description.needs import read_priority

#: Commands that are read into fields of the job.
FIELDS = frozenset(
    {
        "executable", "shell", "arguments", "environment", "transfer_input_files",
        "common_input_files", "public_input_files", "transfer_output_files", "output", "error",
        "initialdir", "priority", "allowed_execute_duration", "max_retries",
        "retry_until", "success_exit_code", "periodic_hold", "periodic_release",
        "periodic_remove", "on_exit_hold", "on_exit_remove", "periodic_hold_reason",
        "periodic_hold_subcode", "periodic_release_reason", "periodic_remove_reason",
        "on_exit_hold_reason", "on_exit_hold_subcode", "input", "transfer_output_remaps",
        "output_destination", "allowed_job_duration", "checkpoint_exit_code",
        "transfer_checkpoint_files", "notification", "hold", "kill_sig_timeout",
        "use_oauth_services", "input_data", "data_access", *IMAGES, *NEEDS.values(),
    }
)  # fmt: skip
#: Other names for some of these.
SYNONYMS = {
    "initial_dir": "initialdir",
    "prio": "priority",
    "env": "environment",
    "stdout": "output",
    "stderr": "error",
    "stdin": "input",
    "job_iwd": "initialdir",
    "transferinputfiles": "transfer_input_files",
    "transferoutputfiles": "transfer_output_files",
    "requestcpus": "request_cpus",
    "requestmemory": "request_memory",
    "requestdisk": "request_disk",
    "requestgpus": "request_gpus",
    "useoauthservices": "use_oauth_services",
    "inputdata": "input_data",
}
#: Attributes that HTCondor had before it had a command for the same.
ATTRIBUTE_SYNONYMS = {"successcheckpointexitcode": "checkpoint_exit_code"}
_BY_PORTAL = "the portal keeps and shows the job's events; no file is written"
_LIVE = "both streams are seen in the portal while the payload runs"
_KEPT = "kept with the job as an attribute"
#: Commands whose purpose is met otherwise here, whatever they say: how.
OTHERWISE = {
    "universe": "vanilla, local, scheduler, container and docker run in a pilot; others are faults",
    "log": _BY_PORTAL,
    "log_xml": _BY_PORTAL,
    "dagman_log": _BY_PORTAL,
    "loghistory": _BY_PORTAL,
    "ulog_execute_attrs": _BY_PORTAL,
    "submit_event_notes": _KEPT,
    "submit_event_user_notes": _KEPT,
    "description": _KEPT,
    "job_ad_information_attrs": _BY_PORTAL,
    "job_machine_attrs": "the attempts show site, queue and worker node",
    "job_machine_attrs_history_length": "all attempts are kept",
    "match_list_length": "all attempts are kept",
    "notify_user": "notices go to the owner, through the channels of the owner's account",
    "email_attributes": "notices have a link to the job's page",
    "should_transfer_files": "files go through the workspace, or by URL, whatever is said",
    "when_to_transfer_output": "outputs come with a success, stdout and stderr with every end",
    "when_to_transfer": "outputs come with a success, stdout and stderr with every end",
    "transfer_executable": "an executable with an absolute path is the worker node's",
    "transfer_input": "the file of input always comes with the job",
    "transfer_output": "stdout always comes back",
    "transfer_error": "stderr always comes back",
    "stream_output": _LIVE,
    "stream_error": _LIVE,
    "stream_input": "the file comes before the payload begins",
    "preserve_relative_paths": "outputs and inputs always keep their directories",
    "batch_name": "of a cluster or DAG as a whole: its name",
    "batch_id": _KEPT,
    "job_batch_name": "of a cluster or DAG as a whole: its name",
    "accounting_group": "of a cluster or DAG as a whole: its group",
    "accounting_group_user": "it is the user who submits",
    "max_idle": "of a cluster as a whole: an option of it, or of the DAG",
    "max_materialize": "of a cluster as a whole: an option of it, or of the DAG",
    "leave_in_queue": "jobs stay in the portal after their end",
    "job_lease_duration": "jobs run on while nobody is logged in",
    "want_graceful_removal": "payloads are always stopped by SIGTERM first",
    "kill_sig": "payloads are stopped by SIGTERM, then SIGKILL",
    "remove_kill_sig": "payloads are stopped by SIGTERM, then SIGKILL",
    "hold_kill_sig": "payloads are stopped by SIGTERM, then SIGKILL",
    "job_max_vacate_time": "use kill_sig_timeout",
    "copy_to_spool": "files are copied with the submission",
    "skip_filechecks": "missing files are told at once",
    "allow_arguments_v1": "both forms of arguments are read",
    "allow_environment_v1": "both forms of the environment are read",
    "max_transfer_input_mb": "the limits of the portal and of queues count",
    "max_transfer_output_mb": "the limits of the portal and of queues count",
    "coresize": "no core files are written",
    "core_size": "no core files are written",
    "stack_size": "limits of the worker node",
    "image_size": "use request_memory",
    "memory_usage": "use request_memory",
    "disk_usage": "use request_disk",
    "rendezvousdir": "there is none",
    "grid_resource": "only jobs of the grid universe have one, which is a fault",
    "dagman_job_id": "every node's job has DAGManJobId",
    "on_evict_checks": "expressions are evaluated at the end of a payload alone",
    "want_ads": "tools that are not here",
}
_YES, _NO = frozenset({"true", "yes", "t", "y", "1"}), frozenset({"false", "no", "f", "n", "0"})
_SIGTERM = frozenset({"sigterm", "term", "15"})
#: Values of these that are followed; a macro may be one of them.
_FOLLOWED = {
    "should_transfer_files": _YES | {"if_needed"},
    "when_to_transfer_output": frozenset({"on_exit", "on_success"}),
    "when_to_transfer": frozenset({"on_exit", "on_success"}),
    "transfer_executable": _YES,
    "transfer_input": _YES,
    "transfer_output": _YES,
    "transfer_error": _YES,
    "stream_input": _NO,
    "preserve_relative_paths": _YES,
    "leave_in_queue": _YES | _NO,
    "want_graceful_removal": _YES,
    "kill_sig": _SIGTERM,
    "remove_kill_sig": _SIGTERM,
    "hold_kill_sig": _SIGTERM,
    "coresize": frozenset({"0"}),
    "core_size": frozenset({"0"}),
    "on_evict_checks": _NO,
}
#: No value of these is followed.
_NEVER_FOLLOWED = frozenset(
    {
        "notify_user", "email_attributes", "job_ad_information_attrs", "job_machine_attrs",
        "accounting_group_user", "job_lease_duration", "job_max_vacate_time",
        "max_transfer_input_mb", "max_transfer_output_mb", "stack_size", "image_size",
        "memory_usage", "disk_usage", "rendezvousdir", "dagman_job_id", "want_ads",
    }
)  # fmt: skip
_NO_CREDENTIALS = "the payload must get its own; use_oauth_services gives it one of this portal"
_RETRY_WITH = "use RETRY ... WITH request_memory*=2 in the DAG file"
_OF_UNIVERSE = "it belongs to a universe that pilots do not run"
_OF_DOCKER = "Apptainer starts all containers, as container_image says"
#: HTCondor's commands that people rely on and that do nothing here, and what to do instead.
WITHOUT_EFFECT = {
    "concurrency_limits_expr": "use concurrency_limits",
    "deferral_prep_time": "jobs begin when a pilot takes them",
    "cron_day_of_month": "jobs begin when a pilot takes them",
    "cron_day_of_week": "jobs begin when a pilot takes them",
    "cron_month": "jobs begin when a pilot takes them",
    "cron_prep_time": "jobs begin when a pilot takes them",
    "cron_window": "jobs begin when a pilot takes them",
    "erase_output_and_error_on_restart": "every attempt keeps its own output",
    "noop_job_exit_code": "use NOOP in the DAG file",
    "noop_job_exit_signal": "use NOOP in the DAG file",
    "container_target_dir": "in a container too the payload begins in its own directory, /job",
    "container_service_names": "payloads have no ports of their own",
    "transfer_container": "the form of container_image says where it is",
    "docker_network_type": _OF_DOCKER,
    "docker_pull_policy": _OF_DOCKER,
    "docker_override_entrypoint": "the executable is started, and no entry point",
    "docker_send_credentials": _NO_CREDENTIALS,
    "mount_image": "use container_image",
    "jar_files": _OF_UNIVERSE,
    "java_vm_args": _OF_UNIVERSE,
    "fetch_files": _OF_UNIVERSE,
    "file_remaps": _OF_UNIVERSE,
    "local_files": _OF_UNIVERSE,
    "compress_files": _OF_UNIVERSE,
    "buffer_files": _OF_UNIVERSE,
    "buffer_size": _OF_UNIVERSE,
    "buffer_block_size": _OF_UNIVERSE,
    "load_profile": "payloads run on Linux",
    "starter_log": "the pilot has one log",
    "primary_unix_group": "payloads run in the account of the pilot, fenced off",
    "gpus_minimum_capability": "use requirements",
    "gpus_maximum_capability": "use requirements",
    "gpus_minimum_memory": "use requirements",
    "gpus_minimum_runtime": "use requirements",
    "x509userproxysubject": _NO_CREDENTIALS,
    "delegate_job_gsi_credentials_lifetime": _NO_CREDENTIALS,
    "s3_access_key_id_file": _NO_CREDENTIALS,
    "s3_secret_access_key_file": _NO_CREDENTIALS,
    "gs_access_key_id_file": _NO_CREDENTIALS,
    "gs_secret_access_key_file": _NO_CREDENTIALS,
    "aws_access_key_id_file": _NO_CREDENTIALS,
    "aws_secret_access_key_file": _NO_CREDENTIALS,
    "aws_region": _NO_CREDENTIALS,
    "getenv": "the submitter's environment is not known here; use environment",
    "nice_user": "use priority",
    "deferral_time": "jobs begin when a pilot takes them",
    "cron_minute": "jobs begin when a pilot takes them",
    "next_job_start_delay": "limit the running jobs of a kind instead",
    "keep_claim_idle": "pilots take the next job by themselves",
    "request_gpus_properties": "use requirements",
    "require_gpus": "use requirements",
    "noop_job": "use NOOP in the DAG file",
    "dont_encrypt_input_files": "files are sent over HTTPS",
    "encrypt_execute_directory": "ask the site for it by requirements",
    "output_directory": "outputs go into the workspace",
    "deferral_window": "jobs begin when a pilot takes them",
    "cron_hour": "jobs begin when a pilot takes them",
    "remote_initialdir": "payloads run in a directory of their own",
    "starter_debug": "the pilot has one log",
    "append_files": "files are replaced as a whole",
    "transfer_plugins": "files come from the workspace",
    "checkpoint_destination": "checkpoints are kept with the job",
    "x509userproxy": _NO_CREDENTIALS,
    "use_x509userproxy": _NO_CREDENTIALS,
    "use_scitokens": _NO_CREDENTIALS,
    "use_scitoken": _NO_CREDENTIALS,
    "scitokens_file": _NO_CREDENTIALS,
    "send_credential": _NO_CREDENTIALS,
    "get_env": "the submitter's environment is not known here; use environment",
    "arguments2": "use arguments",
    "args": "use arguments",
    "environment2": "use environment",
    "retry_request_memory": _RETRY_WITH,
    "retry_request_memory_increase": _RETRY_WITH,
    "retry_request_memory_max": _RETRY_WITH,
    "rank": "jobs do not choose among pilots; the DAG as a whole ranks sites",
    "preferences": "jobs do not choose among pilots; the DAG as a whole ranks sites",
    "machine_count": "a job has one pilot, and cannot span several nodes",
    "node_count": "a job has one pilot, and cannot span several nodes",
    "skip_if_dataflow": "what is done is told by the DAG; use a PRE script with PRE_SKIP",
    "periodic_vacate": "a payload is stopped by periodic_hold or periodic_remove",
    "max_job_retirement_time": "payloads are stopped by SIGTERM, then SIGKILL",
    "jobset": "the DAG is the set",
    "manifest": "what a job left is shown with its attempts",
    "run_as_owner": "payloads run in the account of the pilot, fenced off",
    "want_io_proxy": "files come before the payload begins, and go when it has ended",
    "suspend_job_at_exec": "payloads are not suspended",
    "mount_under_scratch": "the payload has a directory of its own",
}  # fmt: skip
#: Whole families of such commands, by how their names begin.
FAMILIES = {
    "gpus_m": "use requirements",
    "require_": "use requirements",
    "request_": "no such resource is known here; use +Tags",
    "docker_": _OF_DOCKER,
    "container_": "container_image alone says how a container is started",
    "cron_": "jobs begin when a pilot takes them",
    "deferral_": "jobs begin when a pilot takes them",
    "encrypt_": "files are sent over HTTPS",
    "dont_encrypt_": "files are sent over HTTPS",
    "tool_daemon_": "nothing runs beside the payload",
    "vm_": _OF_UNIVERSE,
    "java_vm_": _OF_UNIVERSE,
    "arc_": _OF_UNIVERSE,
    "batch_": _OF_UNIVERSE,
    "ec2_": _OF_UNIVERSE,
    "gce_": _OF_UNIVERSE,
    "azure_": _OF_UNIVERSE,
    "cloud_label_": _OF_UNIVERSE,
}
KNOWN = FIELDS | SYNONYMS.keys() | OTHERWISE.keys() | WITHOUT_EFFECT.keys()
_CLOSE = 0.8

#: Universes that a pilot cannot run, and why; the others run as `vanilla`.
_UNIVERSES = {
    "vanilla": "",
    "5": "",
    "local": "",
    "12": "",
    "scheduler": "",
    "7": "",
    # With an image; without one they are faults of that.
    "container": "",
    "docker": "",
    "parallel": "a job has one pilot, and cannot span several nodes",
    "11": "a job has one pilot, and cannot span several nodes",
    "mpi": "a job has one pilot, and cannot span several nodes",
    "grid": "jobs of a node run in pilots; which site they are sent to is the DAG's matter",
    "9": "jobs of a node run in pilots; which site they are sent to is the DAG's matter",
    "java": "name the Java program as executable and the class among the arguments",
    "10": "name the Java program as executable and the class among the arguments",
    "vm": "pilots start no virtual machines",
    "13": "pilots start no virtual machines",
    "standard": "checkpoints are not taken; use vanilla",
    "1": "checkpoints are not taken; use vanilla",
}


def universe_fault(text: str) -> str:
    """Reason why jobs of a universe cannot run; empty when they can."""
    name = text.strip().lower()
    if not name:
        return ""
    why = _UNIVERSES.get(name, f"there is none; did you mean {_nearest(name, _UNIVERSES)}?")
    return f"universe {text.strip()[:80]}: {why}" if why else ""


def command_warning(name: str) -> str:
    """Warning about a command without a meaning here; empty for other commands."""
    if name in WITHOUT_EFFECT:
        return f"{name} has no effect here: {WITHOUT_EFFECT[name]}"
    if name in KNOWN:
        return ""
    better = _nearest(name, sorted(FIELDS))
    family = next((begin for begin in FAMILIES if name.startswith(begin)), "")
    if family and not better:
        return f"{name} has no effect here: {FAMILIES[family]}"
    if better:
        return f"{name} means nothing here; {better} does"
    return f"{name} means nothing here: it is kept with the job"


def value_warning(name: str, commands: Mapping[str, str]) -> str:
    """Warning about a command of a description whose value is not followed here; empty if it is."""
    text = commands[name].strip()
    if not text:
        return ""
    if name in {"priority", "prio"}:
        return _priority_warning(text)
    if name == "docker_image":
        return f"{name} counts as container_image = docker://...: {_OF_DOCKER}"
    if name in _FOLLOWED:
        is_local = name == "transfer_executable" and _is_absolute(commands.get("executable", ""))
        if "$" in text or text.lower() in _FOLLOWED[name] or is_local:
            return ""
    elif name not in _NEVER_FOLLOWED:
        return ""
    return f"{name} = {text[:80]} is not followed: {OTHERWISE[name]}"


def _priority_warning(text: str) -> str:
    if not re.fullmatch(r"-?[0-9]{1,18}", text) or 0 <= int(text) <= MAX_JOB_PRIORITY:
        return ""
    counts_as = read_priority({"priority": text})
    return f"priority {text} counts as {counts_as}: it is from 0 to {MAX_JOB_PRIORITY} here"


def _is_absolute(executable: str) -> bool:
    return executable.strip().startswith(("/", "$"))


def _nearest(name: str, known: object) -> str:
    close = difflib.get_close_matches(name, list(known), 1, _CLOSE)  # type: ignore[call-overload]
    return str(close[0]) if close else ""
