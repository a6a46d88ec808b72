"""Download responses with the sandboxes of a job or a cluster as one tar, for pages and API.

Each holds one of the user's few slots for downloads while it is sent; without one it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone

from portal.middleware.download_slots import sent_from_a_slot
from wms.core.models import User
from wms.jobs.models import Cluster, Job
from wms.jobs.sandboxes.archive import batches_of_cluster, stream_archive
from wms.jobs.sandboxes.leases import require_cluster_kept, require_kept


def send_archive_of_job(user: User, job: Job) -> StreamingHttpResponse:
    """The sandbox of one job as a tar. Raises OutputsRemoved and Busy."""
    require_kept(job)
    return _send(user, [[job]], name=f"job-{job.pk}", about={"job": job.pk})


def send_archive_of_cluster(
    user: User, cluster: Cluster, jobs: QuerySet[Job]
) -> StreamingHttpResponse:
    """The sandboxes of those jobs of a cluster as a tar. Raises OutputsRemoved and Busy."""
    require_cluster_kept(cluster)
    about = {"cluster": cluster.pk, "size": cluster.size, "made": cluster.made_count}
    return _send(user, batches_of_cluster(jobs), name=f"cluster-{cluster.pk}", about=about)


def _send(
    user: User, batches: Iterable[Sequence[Job]], *, name: str, about: Mapping[str, Any]
) -> StreamingHttpResponse:
    def make() -> StreamingHttpResponse:
        content = stream_archive(batches, now=timezone.now(), about=about)
        answer = StreamingHttpResponse(content, content_type="application/x-tar")
        answer["Content-Disposition"] = f'attachment; filename="{name}.tar"'
        answer["X-Content-Type-Options"] = "nosniff"
        return answer

    return sent_from_a_slot(user, make)
