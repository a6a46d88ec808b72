"""S3 server for tests: OpenStack Swift, which checks signatures, links and checksums."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wms.core.conf import BucketConf
from wms.core.storage.s3_requests import Bucket

BUCKET = "runs"
_ACCOUNT, _USER, _SECRET = "tests", "alice", "a-secret"


@dataclass(frozen=True, slots=True)
class S3Server:
    """The server's address, and a key that it knows."""

    url: str
    key_id: str
    secret: str

    def bucket_conf(self, prefix: str = "", **changed: Any) -> BucketConf:
        """Its bucket, as settings name it."""
        given = BucketConf(self.url, BUCKET, prefix, "us-east-1", self.key_id, self.secret, "", 300)
        return replace(given, **changed)

    def settings(self, prefix: str) -> dict[str, Any]:
        """`PILOTAGE["BLOBS_S3"]` for contents below a prefix."""
        return {
            "BUCKET": BUCKET, "URL": self.url, "PREFIX": prefix, "REGION": "us-east-1",
            "KEY_ID": self.key_id, "SECRET": self.secret, "LINKS_URL": "", "LINK_S": 300,
            "SERVES_PEOPLE": True,
        }  # fmt: skip

    def content(self, key: str) -> bytes | None:
        """Bytes of an object; None where there is none."""
        with closing(Bucket(self.bucket_conf())) as bucket:
            status, _, content = bucket.ask("GET", key, good=(200, 404))
            return content if status == 200 else None


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """A server that runs, with one bucket."""
    program = [sys.executable, "-W", "ignore", "-m", "tests.s3.program", str(folder)]
    process = subprocess.Popen([*program, _ACCOUNT, _USER, _SECRET], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert url, "the S3 server did not start"
        server = S3Server(url, f"{_ACCOUNT}:{_USER}", _SECRET)
        with closing(Bucket(server.bucket_conf())) as bucket:
            bucket.ask("PUT", None)
        yield server
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
