"""Trial run of bubblewrap as pilots on this host would use it, a program of the self-test.

    python -m portal.selftest.bwrap_trial

Prints why bubblewrap does not work; nothing where it does.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from wms.pilots.agent.fence.base import FenceUnusable
from wms.pilots.agent.fence.network import AUTO, Network
from wms.pilots.agent.session.fence_selection import fence_named


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="pilotage-trial-") as folder:
        try:
            fence_named("bwrap", Path(folder), Network(AUTO))
        except FenceUnusable as error:
            sys.stdout.write(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
