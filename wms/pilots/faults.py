"""What goes wrong with one batch system stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog
from celery.exceptions import SoftTimeLimitExceeded

from wms.elements.protocol import ElementError
from wms.sites.models import Queue

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Outcome:
    """How the block went: `fault` says in words what went wrong, or is empty."""

    fault: str = ""


@contextmanager
def faults_contained(event: str, queue: Queue) -> Iterator[Outcome]:
    """Keep what a block does for one queue from stopping the whole loop.

    A batch system's own refusal is logged as a line, a mistake of ours with its traceback. The end
    of the task's time is no fault of the queue and goes through.
    """
    outcome = Outcome()
    try:
        yield outcome
    except SoftTimeLimitExceeded:
        raise
    except ElementError as error:
        log.warning(event, queue=str(queue), error=str(error))
        outcome.fault = str(error)
    except Exception as error:
        log.exception(event, queue=str(queue))
        outcome.fault = f"{type(error).__name__}: {error}"
