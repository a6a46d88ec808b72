"""Login of `HTCondorElement`: the environment of its library, and a runner with another token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wms.elements.logins import Login, in_folder
from wms.elements.runner import TIMEOUT_S, Completed, LocalRunner, clean_environment


def environment(token_directory: Path) -> dict[str, str]:
    """Return the settings of HTCondor's library: tokens of this folder alone, all encrypted."""
    return clean_environment() | {
        "CONDOR_CONFIG": "/dev/null",
        "_CONDOR_SEC_TOKEN_DIRECTORY": str(token_directory),
        "_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS": "IDTOKENS",
        "_CONDOR_SEC_CLIENT_AUTHENTICATION": "REQUIRED",
        "_CONDOR_SEC_CLIENT_ENCRYPTION": "REQUIRED",
        "_CONDOR_SEC_CLIENT_INTEGRITY": "REQUIRED",
    }


class TokenRunner:
    """Runs commands on this host that find the token of a login, and no other."""

    def __init__(self, login: Login) -> None:
        self._login = login

    def run(
        self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = TIMEOUT_S
    ) -> Completed:
        # The library takes tokens from the files of a folder and from nowhere else.
        with in_folder("token", f"{self._login.secret}\n") as folder:
            runner = LocalRunner(environment(folder))
            return runner.run(argv, stdin=stdin, timeout_s=timeout_s)
