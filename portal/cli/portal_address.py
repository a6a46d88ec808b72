"""Options of commands by which they ask a portal elsewhere: its address, and a token.

It uses the standard library only.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path

from portal.cli.client import ApiError, Client


def add_portal_arguments(parser: ArgumentParser, *, is_needed: bool = False) -> None:
    """Add the options that `portal_client` reads."""
    parser.add_argument(
        "--portal", metavar="URL", required=is_needed, help="the address of a portal to ask"
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        type=Path,
        help="has the API token for it; by default the variable PILOTAGE_TOKEN",
    )


def portal_client(url: str, token_file: Path | None) -> Client:
    """Client of the portal that the options name. Raises ApiError without a token."""
    if not url.startswith(("http://", "https://")):
        raise ApiError(f"{url} is no address such as https://portal.example.org")
    try:
        token = token_file.read_text(encoding="utf-8").strip() if token_file is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ApiError(f"{token_file}: {error}") from error
    token = token or os.environ.get("PILOTAGE_TOKEN", "").strip()
    if not token or not token.isprintable():
        raise ApiError("an API token is needed: --token-file, or the variable PILOTAGE_TOKEN")
    return Client(url.rstrip("/"), token, is_remote=True)
