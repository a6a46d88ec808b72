"""Settings of the bucket that keeps contents of files in place of a folder."""

from __future__ import annotations

from typing import Any

from portal.config import env


def blobs_s3() -> dict[str, Any]:
    """Value of `PILOTAGE["BLOBS_S3"]`; without a bucket's name nothing of it counts."""
    bucket = env.text("PILOTAGE_BLOBS_S3_BUCKET", "")
    needed = None if bucket else ""
    return {
        "BUCKET": bucket,
        "URL": env.text("PILOTAGE_BLOBS_S3_URL", needed),
        "PREFIX": env.text("PILOTAGE_BLOBS_S3_PREFIX", "").strip("/"),
        "REGION": env.text("PILOTAGE_BLOBS_S3_REGION", "us-east-1"),
        "KEY_ID": env.text("PILOTAGE_BLOBS_S3_KEY_ID", needed),
        "SECRET": env.text("PILOTAGE_BLOBS_S3_SECRET", needed),
        "LINKS_URL": env.text("PILOTAGE_BLOBS_S3_LINKS_URL", ""),
        "LINK_S": env.number("PILOTAGE_BLOBS_S3_LINK_S", 900),
        "SERVES_PEOPLE": env.flag("PILOTAGE_BLOBS_S3_SERVES_PEOPLE", True),
    }
