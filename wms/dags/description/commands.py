"""Commands of submit descriptions: those with a meaning here, and warnings about the others."""

from __future__ import annotations

import difflib

from wms.dags.description.needs import COMMANDS as NEEDS

#: Commands that are read into fields of the job.
FIELDS = frozenset(
    {
        "executable", "shell", "arguments", "environment", "transfer_input_files",
        "common_input_files", "public_input_files", "transfer_output_files", "output", "error",
        "initialdir", "priority", "allowed_execute_duration", "request_disk", "max_retries",
        "retry_until", "success_exit_code", "periodic_hold", "periodic_release",
        "periodic_remove", "on_exit_hold", "on_exit_remove", *NEEDS.values(),
    }
)  # fmt: skip
#: Other names for some of these.
SYNONYMS = {
    "initial_dir": "initialdir",
    "prio": "priority",
    "env": "environment",
    "stdout": "output",
    "stderr": "error",
    "job_iwd": "initialdir",
    "transferinputfiles": "transfer_input_files",
    "transferoutputfiles": "transfer_output_files",
    "requestcpus": "request_cpus",
    "requestmemory": "request_memory",
    "requestdisk": "request_disk",
    "requestgpus": "request_gpus",
}
#: What has the same meaning here whatever it says, or is about tools that are not here.
_SILENT = frozenset(
    {
        "universe", "log", "log_xml", "notification", "notify_user", "should_transfer_files",
        "when_to_transfer_output", "transfer_executable", "batch_name", "description",
        "accounting_group_user", "leave_in_queue", "job_lease_duration", "email_attributes",
        "dagman_log", "submit_event_notes", "want_graceful_removal", "stream_output",
        "stream_error", "stream_input", "periodic_hold_reason", "periodic_hold_subcode",
        "on_exit_hold_reason", "on_exit_hold_subcode", "periodic_remove_reason", "rendezvousdir",
        "copy_to_spool", "job_machine_attrs", "job_machine_attrs_history_length",
        "skip_filechecks", "ulog_execute_attrs", "when_to_transfer", "transfer_output",
        "transfer_error", "grid_resource", "stack_size", "coresize", "max_transfer_input_mb",
        "max_transfer_output_mb", "allow_arguments_v1", "allow_environment_v1", "batch_id",
        "core_size", "dagman_job_id", "job_ad_information_attrs", "match_list_length",
        "on_evict_checks", "submit_event_user_notes", "want_ads", "image_size",
        "disk_usage", "memory_usage",
    }
)  # fmt: skip
#: Those that may send outputs to places where nothing of ours sends them.
DESTINATIONS = frozenset({"output_destination", "transfer_output_remaps"})
_NO_CREDENTIALS = "jobs are given no credentials; the payload must get its own"
_RETRY_WITH = "use RETRY ... WITH request_memory*=2 in the DAG file"
_OF_UNIVERSE = "it belongs to a universe that pilots do not run"
#: HTCondor's commands that people rely on and that do nothing here, and what to do instead.
_WITHOUT_EFFECT = {
    "input": "the payload has no standard input; name the file as an argument",
    "getenv": "the submitter's environment is not known here; use environment",
    "transfer_output_remaps": "outputs keep their names",
    "preserve_relative_paths": "input files always keep their directories",
    "output_destination": "outputs go into the workspace",
    "nice_user": "use priority",
    "hold": "the jobs of a node begin when it is ready",
    "deferral_time": "jobs begin when a pilot takes them",
    "cron_minute": "jobs begin when a pilot takes them",
    "kill_sig": "payloads are stopped by SIGTERM, then SIGKILL",
    "job_max_vacate_time": "payloads are stopped by SIGTERM, then SIGKILL",
    "docker_image": "pilots start no containers; start it in the executable",
    "container_image": "pilots start no containers; start it in the executable",
    "next_job_start_delay": "limit the running jobs of a kind instead",
    "keep_claim_idle": "pilots take the next job by themselves",
    "request_gpus_properties": "use requirements",
    "require_gpus": "use requirements",
    "allowed_job_duration": "use allowed_execute_duration, or TIMEOUT in the DAG file",
    "noop_job": "use NOOP in the DAG file",
    "dont_encrypt_input_files": "files are sent over HTTPS",
    "encrypt_execute_directory": "ask the site for it by requirements",
    "output_directory": "outputs go into the workspace",
    "max_idle": "it is the whole DAG's, and belongs in its options",
    "max_materialize": "it is the whole DAG's, and belongs in its options",
    "deferral_window": "jobs begin when a pilot takes them",
    "cron_hour": "jobs begin when a pilot takes them",
    "remote_initialdir": "payloads run in a directory of their own",
    "starter_debug": "the pilot has one log",
    "append_files": "files are replaced as a whole",
    "transfer_plugins": "files come from the workspace",
    "transfer_checkpoint_files": "a payload that was stopped begins anew",
    "checkpoint_exit_code": "a payload that was stopped begins anew",
    "checkpoint_destination": "a payload that was stopped begins anew",
    "x509userproxy": _NO_CREDENTIALS,
    "use_x509userproxy": _NO_CREDENTIALS,
    "use_scitokens": _NO_CREDENTIALS,
    "use_scitoken": _NO_CREDENTIALS,
    "scitokens_file": _NO_CREDENTIALS,
    "use_oauth_services": _NO_CREDENTIALS,
    "useoauthservices": _NO_CREDENTIALS,
    "send_credential": _NO_CREDENTIALS,
    "stdin": "the payload has no standard input; name the file as an argument",
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
    "concurrency_limits_expr": "it is the whole DAG's: use concurrency_limits in its description",
    "want_io_proxy": "files come before the payload begins, and go when it has ended",
    "transfer_input": "the payload has no standard input",
    "suspend_job_at_exec": "payloads are not suspended",
    "mount_under_scratch": "the payload has a directory of its own",
}  # fmt: skip
#: Whole families of such commands, by how their names begin.
_FAMILIES = {
    "gpus_m": "use requirements",
    "require_": "use requirements",
    "request_": "no such resource is known here; use +Tags",
    "docker_": "pilots start no containers; start it in the executable",
    "container_": "pilots start no containers; start it in the executable",
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
KNOWN = FIELDS | SYNONYMS.keys() | _SILENT | _WITHOUT_EFFECT.keys()
_CLOSE = 0.8

#: Universes that a pilot cannot run, and why; the others run as `vanilla`.
_UNIVERSES = {
    "vanilla": "",
    "5": "",
    "local": "",
    "12": "",
    "scheduler": "",
    "7": "",
    "container": "its image would not be used: pilots start no containers",
    "docker": "its image would not be used: pilots start no containers",
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
    if name in _WITHOUT_EFFECT:
        return f"{name} has no effect here: {_WITHOUT_EFFECT[name]}"
    if name in KNOWN:
        return ""
    better = _nearest(name, sorted(FIELDS))
    family = next((begin for begin in _FAMILIES if name.startswith(begin)), "")
    if family and not better:
        return f"{name} has no effect here: {_FAMILIES[family]}"
    if better:
        return f"{name} means nothing here; {better} does"
    return f"{name} means nothing here: it is kept with the job"


def _nearest(name: str, known: object) -> str:
    close = difflib.get_close_matches(name, list(known), 1, _CLOSE)  # type: ignore[call-overload]
    return str(close[0]) if close else ""
