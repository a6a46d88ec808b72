"""Manifests and files that pilots fetch by hash: made, stored and read; script of a batch.

The submitted script names the manifest by its hash.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from django.db import models

from wms.core.conf import conf
from wms.core.errors import NotFound
from wms.pilots.agent.checks import BUILT_IN, NEEDED_SETTINGS
from wms.pilots.agent.checks.publication import Declaration
from wms.pilots.models import PilotFile, PilotManifest
from wms.pilots.program.bootstrap import render_script
from wms.pilots.program.bundle import agent_bundle
from wms.pilots.program.check_settings import read_entries
from wms.pilots.program.checks import added_checks
from wms.pilots.program.declarations import declared_by, declared_by_built_in
from wms.sites.models import Queue

FORMAT = 1
_TIME_LIMIT_S = 60
#: Periods of built-in checks that are repeated while jobs run.
_PERIODS_S = {"disk": 300}


def submission_script(queue: Queue, manifest: str, *, is_test: bool = False) -> str:
    """Script for a batch of pilots of this queue, which run what a stored manifest lists.

    A test pilot keeps no slot of an unfit node.
    """
    return render_script(
        conf().public_url,
        manifest,
        http_proxy=queue.http_proxy,
        hold_s=0 if is_test else queue.hold_after_failure_s,
    )


def store_manifest(queue: Queue, *, is_test: bool = False) -> str:
    """Store the manifest for pilots of this queue, if it is new; return its SHA-256.

    With that of a test pilot the checks go on after one that fails. Raises InvalidInput when the
    queue's checks cannot be made into a manifest.
    """
    bundle = agent_bundle()
    added = list(added_checks(queue))
    scripts = {sha256_of(each.script.encode()): each.script.encode() for each in added}
    _store(PilotFile, {bundle.sha256: bundle.content, **scripts})
    own = read_entries(queue)
    manifest = {
        "format": FORMAT,
        "agent": {
            "name": "agent.pyz",
            "sha256": bundle.sha256,
            "size_bytes": len(bundle.content),
        },
        "checks": [
            *_built_in(queue, own, replaced={each.name for each in added}),
            *(
                {
                    "name": each.name,
                    "builtin": False,
                    "sha256": sha256_of(each.script.encode()),
                    "size_bytes": len(each.script.encode()),
                    "time_limit_s": each.time_limit_s,
                    "period_s": each.period_s,
                    "settings": each.settings,
                    **_publishes(declared_by(each)),
                }
                | own.get(each.name, {})
                for each in added
            ),
        ],
        "settings": _lifetime_settings(),
        **({"runs_all_checks": True} if is_test else {}),
    }
    content = json.dumps(manifest, sort_keys=True).encode()
    sha256 = sha256_of(content)
    _store(PilotManifest, {sha256: content})
    return sha256


def sha256_of(content: bytes) -> str:
    """Hash under which a content is stored."""
    return hashlib.sha256(content).hexdigest()


@functools.lru_cache(maxsize=64)
def manifest_content(sha256: str) -> bytes:
    """Content of the manifest of this hash. Raises NotFound."""
    return _content(PilotManifest, sha256)


@functools.lru_cache(maxsize=64)
def file_content(sha256: str) -> bytes:
    """Content of the file of this hash. Raises NotFound."""
    return _content(PilotFile, sha256)


def _content(model: type[models.Model], sha256: str) -> bytes:
    content = model._default_manager.filter(pk=sha256).values_list("content", flat=True).first()
    if content is None:
        raise NotFound("No pilot was ever told to fetch this.")
    return bytes(content)


def _store(model: type[models.Model], contents: Mapping[str, bytes]) -> None:
    known = set(model._default_manager.filter(pk__in=contents).values_list("pk", flat=True))
    rows = [model(sha256=pk, content=contents[pk]) for pk in contents if pk not in known]
    model._default_manager.bulk_create(rows, ignore_conflicts=True)


def _built_in(
    queue: Queue, own: Mapping[str, dict[str, Any]], *, replaced: Collection[str]
) -> list[dict[str, Any]]:
    """Built-in checks that have something to check on this queue's nodes.

    Not those of whose name an added one is, from before there was the built-in one.
    """
    platform = {"platforms": [queue.platform]} if queue.platform else {}
    checks = [
        {
            "name": name,
            "builtin": True,
            "time_limit_s": _TIME_LIMIT_S,
            "period_s": _PERIODS_S.get(name),
            "settings": platform if name == "platform" else {},
            **_publishes(declared_by_built_in(name)),
        }
        | own.get(name, {})
        for name in BUILT_IN
        if name not in replaced
    ]
    return [
        check
        for check in checks
        if NEEDED_SETTINGS.get(str(check["name"])) in {None, *check["settings"]}
    ]


def _publishes(declared: Declaration) -> dict[str, Any]:
    return {"publishes": declared.to_json()} if declared else {}


def _lifetime_settings() -> dict[str, float]:
    """Settings of a pilot's lifetime, in seconds."""
    settings = conf()
    return {
        "stop_margin_s": settings.agent_stop_margin_s,
        "retire_spread_s": settings.agent_retire_spread_s,
        "job_max_s": settings.agent_job_max_s,
        "tail_limit_s": settings.agent_tail_limit_s,
    }
