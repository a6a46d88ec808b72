"""Directives of a job as facts on its page: URLs, input data, image, names, limits and more."""

from __future__ import annotations

from collections.abc import Mapping

from portal.web.jobs.needs import NeedFact
from portal.web.templatetags.pilotage import span
from wms.jobs.directives import Directives
from wms.jobs.models import Job

#: What the owner is told of, by the value of `notification`.
_TOLD_OF = {"complete": "its success", "error": "its failure", "always": "its end, whatever it is"}


def directive_facts(job: Job) -> list[NeedFact]:
    """Directives of the run that the description gives, and no others."""
    given = Directives.of(job.directives)
    remaps = ", ".join(f"{name} as {new}" for name, new in given.output_remaps.items())
    code = given.checkpoint_exit_code
    facts = [
        NeedFact("Fetched by the pilot", _urls(given.input_urls, "from"), is_broad=True),
        NeedFact("Read where they are", ", ".join(given.input_data), is_broad=True),
        NeedFact("Input data come from", given.data_access),
        NeedFact("Sent by the pilot", _urls(given.output_urls, "to"), is_broad=True),
        NeedFact("Standard input", given.stdin_name),
        NeedFact("Container image", given.container_image, is_broad=True),
        NeedFact("Outputs with new names", remaps, is_broad=True),
        NeedFact("Held when it is with a pilot for", _time(given.duration_limit_s)),
        NeedFact("At its wall-clock limit", "held" if given.is_held_at_wall_limit else ""),
        NeedFact("Exit code of a checkpoint", "" if code is None else str(code)),
        NeedFact("Files of a checkpoint", ", ".join(given.checkpoint_files), is_broad=True),
        NeedFact("Time from SIGTERM to SIGKILL", _time(given.kill_grace_s)),
        NeedFact("The owner is told of", _TOLD_OF.get(given.notification, "")),
        NeedFact("Began", "held" if given.is_held else ""),
        NeedFact("Credential", "a token of its owner, for itself" if given.has_token else ""),
    ]
    return [fact for fact in facts if fact.text]


def _urls(urls: Mapping[str, str], way: str) -> str:
    """URLs without what may be signed."""
    return ", ".join(f"{name} {way} {url.partition('?')[0]}" for name, url in urls.items())


def _time(seconds: int) -> str:
    return span(seconds) if seconds else ""
