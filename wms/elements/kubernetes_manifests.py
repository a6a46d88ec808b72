"""Manifests of a pilot in Kubernetes: a Job that runs its script, and the Secret it is read from.

Also the labels and names by which pilots are found.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]

OURS = {"app.kubernetes.io/managed-by": "pilotage"}
BATCH, PILOT = "pilotage/batch", "pilotage/pilot"
#: Label of a Job that somebody has cancelled.
CANCELLED = "pilotage/cancelled"
CONTAINER = "pilot"
#: Stands for the Job's unique id, which the API server makes.
OWNER = "@OWNER@"
#: What nobody has told the cluster to forget goes by itself: the portal keeps logs for a day.
KEPT_S = 3 * 86_400
#: Time between the polite signal and the hard one, in which a pilot gives its jobs back.
GRACE_S = 30
#: The kernel takes no longer text in a process's environment.
LONGEST_SCRIPT_BYTES = 120 * 1024

# The script is no file, so that a payload beside it finds none; nor is it left in the environment.
_RUN = 'text=$PILOTAGE_TEXT; unset PILOTAGE_TEXT; eval "$text"'


@dataclass(frozen=True, slots=True)
class PodOptions:
    """What a queue's settings say of its pods."""

    image: str
    run_as_user: int
    gpu_resource: str
    node_selector: Mapping[str, str]
    priority_class: str = ""
    image_pull_secret: str = ""


def pilot_name(batch: str, index: int) -> str:
    """Name of a pilot's Job and Secret, which is also the pilot's id."""
    return f"{batch}-{index}"


def labels_of(batch: str, pilot: str) -> dict[str, str]:
    """Labels of all that belongs to a pilot."""
    return {**OURS, BATCH: batch, PILOT: pilot}


def job_manifest(batch: str, index: int, slot: Mapping[str, int], options: PodOptions) -> Manifest:
    """Job of one pilot: one pod, which is started once and never again.

    `slot` has CORES, MEMORY_MB, GPUS and MINUTES. The time counts from the pod's start, so waiting
    costs a pilot nothing.
    """
    pilot = pilot_name(batch, index)
    labels = labels_of(batch, pilot)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": pilot, "labels": labels},
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 0,
            # A pod that is evicted or deleted is a failed one; a second would find its secret used.
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": KEPT_S,
            "template": {
                "metadata": {"labels": labels},
                "spec": _pod_spec(pilot, index, slot, options),
            },
        },
    }


def secret_manifest(batch: str, index: int, script: str, secret: str) -> Manifest:
    """Secret with a pilot's script and its word; it goes with the Job that owns it."""
    pilot = pilot_name(batch, index)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": pilot, "uid": OWNER}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": pilot,
            "labels": labels_of(batch, pilot),
            "ownerReferences": [owner],
        },
        "type": "Opaque",
        "immutable": True,
        "data": {"script": _coded(script), "secret": _coded(secret)},
    }


def cancelling_patch() -> Manifest:
    """Merge patch that ends a Job's pod, and leaves the Job to tell of it."""
    return {
        "metadata": {"labels": {CANCELLED: "yes"}},
        "spec": {"activeDeadlineSeconds": 1},
    }


def _pod_spec(pilot: str, index: int, slot: Mapping[str, int], options: PodOptions) -> Manifest:
    spec: Manifest = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": slot["MINUTES"] * 60,
        "terminationGracePeriodSeconds": GRACE_S,
        # Nothing of the cluster's own is in the pod: no account's token, no addresses of services.
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": options.run_as_user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(pilot, index, slot, options)],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    }
    if options.node_selector:
        spec["nodeSelector"] = dict(options.node_selector)
    if options.priority_class:
        spec["priorityClassName"] = options.priority_class
    if options.image_pull_secret:
        spec["imagePullSecrets"] = [{"name": options.image_pull_secret}]
    return spec


def _container(pilot: str, index: int, slot: Mapping[str, int], options: PodOptions) -> Manifest:
    amounts = {"cpu": str(slot["CORES"]), "memory": f"{slot['MEMORY_MB']}Mi"}
    if slot["GPUS"]:
        amounts[options.gpu_resource] = str(slot["GPUS"])
    told = {"INDEX": index, **slot}
    return {
        "name": CONTAINER,
        "image": options.image,
        "command": ["/bin/sh", "-c", _RUN],
        "workingDir": "/tmp",
        "env": [
            *({"name": f"PILOTAGE_{key}", "value": str(value)} for key, value in told.items()),
            {"name": "HOME", "value": "/tmp"},
            _from_secret("PILOTAGE_TEXT", pilot, "script"),
            _from_secret("PILOTAGE_SECRET", pilot, "secret"),
        ],
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],
    }


def _from_secret(variable: str, pilot: str, key: str) -> Manifest:
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": pilot, "key": key}}}


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
