"""Settings that the domain reads (Django's `PILOTAGE` dictionary), with their types and units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings


@dataclass(frozen=True, slots=True)
class BucketConf:
    """A bucket of an S3 store, where the contents are instead of a folder."""

    url: str
    bucket: str
    prefix: str
    region: str
    key_id: str
    secret: str = field(repr=False)
    #: The store's address as pilots and people reach it; empty: the same.
    links_url: str
    link_s: int
    #: Whether people's downloads are led to the store.
    serves_people: bool = True


@dataclass(frozen=True, slots=True)
class Conf:
    """The `PILOTAGE` dictionary of the Django settings, as values."""

    agent_heartbeat_s: float
    agent_poll_s: float
    agent_idle_limit_s: float
    agent_tail_limit_s: float
    agent_stop_margin_s: float
    agent_retire_spread_s: float
    agent_job_max_s: float
    pilot_stalled_after_s: float
    reschedule_pauses_s: tuple[float, ...]
    reschedule_avoids: str
    retry_patience_s: float
    are_stalled_jobs_failed: bool
    negotiation_period_s: float
    outputs_kept_s: float
    outputs_kept_most_s: float
    max_upload_bytes: int
    max_open_uploads: int
    upload_kept_s: float
    max_stream_bytes: int
    max_dag_text_bytes: int
    max_dag_files: int
    max_splice_depth: int
    max_dag_nodes: int
    max_dag_arcs: int
    max_check_s: float
    dag_options: Mapping[str, Any]
    max_heavy_requests: int
    max_heavy_requests_per_user: int
    max_held_claims: int
    factory_lease_s: float
    factory_stale_s: float
    frontend_tokens_dir: Path
    factory_tokens_dir: Path
    trial_limit_s: float
    trial_memory_mb: float
    trial_command: tuple[str, ...]
    base_dir: Path
    trials_dir: Path
    blobs_dir: Path
    #: None: the contents are in `blobs_dir`, else this is for what is on its way.
    bucket: BucketConf | None
    host_pilots_dir: Path
    public_url: str
    #: Networks, addresses and names that transfers reach although they are not public.
    allowed_addresses: tuple[str, ...]
    #: Whether `s3:` addresses lead anywhere.
    has_s3_store: bool


def conf() -> Conf:
    """The settings in force now (read anew at each call, so that tests can override them)."""
    raw: dict[str, Any] = settings.PILOTAGE
    return Conf(
        agent_heartbeat_s=float(raw["AGENT_HEARTBEAT_S"]),
        agent_poll_s=float(raw["AGENT_POLL_S"]),
        agent_idle_limit_s=float(raw["AGENT_IDLE_LIMIT_S"]),
        agent_tail_limit_s=float(raw["AGENT_TAIL_LIMIT_S"]),
        agent_stop_margin_s=float(raw["AGENT_STOP_MARGIN_S"]),
        agent_retire_spread_s=float(raw["AGENT_RETIRE_SPREAD_S"]),
        agent_job_max_s=float(raw["AGENT_JOB_MAX_S"]),
        pilot_stalled_after_s=float(raw["PILOT_STALLED_AFTER_S"]),
        reschedule_pauses_s=tuple(float(each) for each in raw["RESCHEDULE_PAUSES_S"]),
        reschedule_avoids=str(raw["RESCHEDULE_AVOIDS"]),
        retry_patience_s=float(raw["RETRY_PATIENCE_S"]),
        are_stalled_jobs_failed=raw["STALLED_JOBS"] == "fail",
        negotiation_period_s=float(raw["NEGOTIATION_PERIOD_S"]),
        outputs_kept_s=float(raw["OUTPUTS_KEPT_S"]),
        outputs_kept_most_s=float(raw["OUTPUTS_KEPT_MOST_S"]),
        max_upload_bytes=int(raw["MAX_UPLOAD_BYTES"]),
        max_open_uploads=int(raw["MAX_OPEN_UPLOADS"]),
        upload_kept_s=float(raw["UPLOAD_KEPT_S"]),
        max_stream_bytes=int(raw["MAX_STREAM_BYTES"]),
        max_dag_text_bytes=int(raw["MAX_DAG_TEXT_BYTES"]),
        max_dag_files=int(raw["MAX_DAG_FILES"]),
        max_splice_depth=int(raw["MAX_SPLICE_DEPTH"]),
        max_dag_nodes=int(raw["MAX_DAG_NODES"]),
        max_dag_arcs=int(raw["MAX_DAG_ARCS"]),
        max_check_s=float(raw["MAX_CHECK_S"]),
        dag_options=raw["DAG_OPTIONS"],
        max_heavy_requests=int(raw["MAX_HEAVY_REQUESTS"]),
        max_heavy_requests_per_user=int(raw["MAX_HEAVY_REQUESTS_PER_USER"]),
        max_held_claims=int(raw["MAX_HELD_CLAIMS"]),
        factory_lease_s=float(raw["FACTORY_LEASE_S"]),
        factory_stale_s=float(raw["FACTORY_STALE_S"]),
        frontend_tokens_dir=Path(raw["FRONTEND_TOKENS_DIR"]),
        factory_tokens_dir=Path(raw["FACTORY_TOKENS_DIR"]),
        trial_limit_s=float(raw["TRIAL_LIMIT_S"]),
        trial_memory_mb=float(raw["TRIAL_MEMORY_MB"]),
        trial_command=tuple(raw["TRIAL_COMMAND"]),
        base_dir=Path(raw["BASE_DIR"]),
        trials_dir=Path(raw["TRIALS_DIR"]),
        blobs_dir=Path(raw["BLOBS_DIR"]),
        bucket=bucket_conf(raw["BLOBS_S3"]),
        host_pilots_dir=Path(raw["HOST_PILOTS_DIR"]),
        public_url=str(raw["PUBLIC_URL"]),
        allowed_addresses=tuple(raw["PLACEMENT"]["ALLOWED"]),
        has_s3_store=bool(raw["PLACEMENT"]["S3_URL"]),
    )


def bucket_conf(raw: Mapping[str, Any]) -> BucketConf | None:
    """The bucket that settings name; None for a folder."""
    if not raw["BUCKET"]:
        return None
    return BucketConf(
        url=str(raw["URL"]),
        bucket=str(raw["BUCKET"]),
        prefix=str(raw["PREFIX"]),
        region=str(raw["REGION"]),
        key_id=str(raw["KEY_ID"]),
        secret=str(raw["SECRET"]),
        links_url=str(raw["LINKS_URL"]),
        link_s=int(raw["LINK_S"]),
        serves_people=bool(raw["SERVES_PEOPLE"]),
    )
