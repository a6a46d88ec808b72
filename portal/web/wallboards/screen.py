"""Wallboard page for a screen, by an address with a token: large figures, no links, no login."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.middleware.login_throttle import ip_address_of
from portal.shared.address_tokens import token_in_address
from portal.shared.site_lines import SiteLine
from portal.web.dashboard.board import Board, Scope, Tile, board_of
from portal.web.dashboard.needs_attention import AttentionItem
from portal.web.shared.pages import render_page
from wms.core.errors import NotAuthenticated, PilotageError
from wms.core.models import ApiToken, TokenKind
from wms.dags.states import DagState
from wms.failures.selectors import Window
from wms.jobs.states import JobState

#: Seconds after which a screen asks again.
REFRESH_S = 15
_DAG_STATES = (DagState.IDLE, DagState.RUNNING, DagState.HELD, DagState.HALTED)
_JOB_STATES = (
    JobState.WAITING, JobState.MATCHED, JobState.RUNNING, JobState.STALLED, JobState.HELD,
)  # fmt: skip
_FAILURES = 8
_TROUBLES = 12
_SITES = 24


@dataclass(frozen=True, slots=True)
class Wallboard:
    """Figures of a wallboard, from the board of who has made it."""

    board: Board

    @property
    def dags(self) -> list[Tile]:
        """DAGs that have not ended, by state."""
        return _chosen(self.board.dag_tiles, _DAG_STATES)

    @property
    def jobs(self) -> list[Tile]:
        """Jobs that have not ended, by state."""
        return _chosen(self.board.job_tiles, _JOB_STATES)

    @property
    def failures(self) -> list[AttentionItem]:
        """Failing and failed DAGs that nobody has acknowledged, the oldest failure first."""
        found = [
            item
            for item in self.board.attention_items
            if item.thing == "DAG"
            and item.state in {"failing", DagState.FAILED}
            and not item.care.acknowledged_by
        ]
        return sorted(found, key=lambda item: item.failed_at or item.since or timezone.now())

    @property
    def first_failures(self) -> list[AttentionItem]:
        """Failures that a screen has room for."""
        return self.failures[:_FAILURES]

    @property
    def troubles(self) -> list[SiteLine]:
        """Sites that take no DAG, or of which no queue answers."""
        return [line for line in self.board.sites if line.state != "enabled" or line.is_unanswered]

    @property
    def first_troubles(self) -> list[SiteLine]:
        """Sites in trouble that a screen has room for."""
        return self.troubles[:_TROUBLES]

    @property
    def sites(self) -> list[SiteLine]:
        """Sites with most pilots first, as many as a screen has room for."""
        lines = [line for line in self.board.sites if line.running_pilots or line.queued_pilots]
        return sorted(lines, key=lambda line: (-line.running_pilots, line.name))[:_SITES]


def _chosen(tiles: Sequence[Tile], states: Sequence[str]) -> list[Tile]:
    by_state = {tile.state: tile for tile in tiles}
    return [by_state[state] for state in states]


@require_safe
def screen(request: HttpRequest) -> HttpResponse:
    """Page of a screen, or its live part; a refusal in large letters, and without a way out."""
    try:
        token = _token_of(request)
    except PilotageError as error:
        return _sealed(render(request, "web/wallboard_refused.html", {"error": error},
                              status=error.status))  # fmt: skip
    now = timezone.now()
    board = board_of(token.user, now=now, scope=Scope.ALL, window=Window.DAY)
    context = {
        "wall": Wallboard(board),
        "board": board,
        "token": token,
        "now": now,
        "refresh_s": REFRESH_S,
    }
    return _sealed(render_page(request, "wallboard", context))


def _token_of(request: HttpRequest) -> ApiToken:
    token = token_in_address(
        request.GET.dict(),
        now=timezone.now(),
        address=ip_address_of(request),
        kind=TokenKind.WALLBOARD,
    )
    if token is None:
        raise NotAuthenticated("This address has no token: shifters make one for each screen.")
    return token


def _sealed(response: HttpResponse) -> HttpResponse:
    """Response that neither a cache nor another server learns the address of."""
    response["Referrer-Policy"] = "no-referrer"
    response["Cache-Control"] = "no-store"
    return response
