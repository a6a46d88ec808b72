"""S3 server (moto) with one bucket, which checks the signatures of requests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("moto.server", reason="moto is not installed")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import boto3
    from moto import settings
    from moto.core.responses import ActionAuthenticatorMixin
    from moto.moto_api._internal import moto_api_backend
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

BUCKET = "runs"
_ALL = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
)


@dataclass
class S3Store:
    """The server's address, and a key that it knows."""

    url: str
    key_id: str
    secret: str
    client: Any

    def content(self, key: str) -> bytes:
        """What an object holds."""
        found: bytes = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return found


@contextmanager
def s3_server() -> Iterator[S3Store]:
    """A server that runs; from here on each request has to be signed well."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        given = {"endpoint_url": url, "region_name": "us-east-1"}
        first = {"aws_access_key_id": "first", "aws_secret_access_key": "first"}
        iam = boto3.client("iam", **given, **first)
        iam.create_user(UserName="alice")
        iam.put_user_policy(UserName="alice", PolicyName="all", PolicyDocument=_ALL)
        key = iam.create_access_key(UserName="alice")["AccessKey"]
        own = {
            "aws_access_key_id": key["AccessKeyId"],
            "aws_secret_access_key": key["SecretAccessKey"],
        }
        client = boto3.client("s3", **given, **own)
        client.create_bucket(Bucket=BUCKET)
        ActionAuthenticatorMixin.request_count = 0
        settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
        yield S3Store(url, key["AccessKeyId"], key["SecretAccessKey"], client)
    finally:
        settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")
        server.stop()
        moto_api_backend.reset()
