"""Program that tries bubblewrap as pilots on this host would use it; run by the self-test.

    python -m portal.selftest.bwrap_trial

Prints why bubblewrap does not work; nothing where it does.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from wms.pilots.agent.fence import FenceFails
from wms.pilots.agent.fences import fence_named
from wms.pilots.agent.network import AUTO, Network


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="pilotage-trial-") as folder:
        try:
            fence_named("bwrap", Path(folder), Network(AUTO))
        except FenceFails as error:
            sys.stdout.write(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
