"""Command that waits for SIGTERM or SIGINT, then ends every pilot that runs on this host.

Pilots are detached from whatever started them, as on a real batch system. This program is stopped
after the worker and before the web server, so that the pilots can still say good-bye.
"""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand

from wms.core.conf import conf
from wms.elements.host_cleanup import end_host_pilots

_ENDINGS = {signal.SIGTERM, signal.SIGINT}


class Command(BaseCommand):
    help = "Wait for SIGTERM, then end all host pilots and wait until they are gone."

    def handle(self, *args: Any, **options: Any) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)
        signal.sigwait(_ENDINGS)
        ended = end_host_pilots(conf().host_pilots_dir)
        self.stdout.write(f"host pilots ended: {ended.by_term}, killed: {ended.by_kill}")
