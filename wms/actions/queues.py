"""Kind queue, and its actions: send one test pilot, whatever the demand; test the connection."""

from __future__ import annotations

from wms.actions.actions import Action, InApi, OnPage
from wms.actions.arguments import Argument, ArgumentType
from wms.actions.kinds import Kind, actions, one_alone
from wms.pilots.policy import may_steer
from wms.pilots.testing.connections import ask_connection_test
from wms.pilots.testing.services import send_test_pilot
from wms.sites.models import Queue
from wms.sites.selectors import visible_sites

QUEUES = Kind(
    name="queues",
    noun="queue",
    nouns="queues",
    model=Queue,
    visible=lambda user: Queue.objects.filter(site__in=visible_sites(user)),
    permits=lambda user, queue: may_steer(user, queue.site),
    actions=actions(
        Action(
            "test",
            "Send a test pilot",
            (),
            one_alone(send_test_pilot),
            page=OnPage(
                "One pilot is sent here, whether or not jobs wait, and even if the queue gets no "
                "pilots now. It runs all checks of its node, takes no jobs unless you let it, and "
                "ends by itself; its page is the report.",
                "is sent",
            ),
            api=InApi(
                "Send one test pilot to a queue",
                "It is sent whatever the demand, also where the director sends none; needs a "
                "reason. One test of a queue is under way at a time: a second one is refused "
                "(`/problems/open-test/`), and the answer names the `pilot` of the first.",
                body="What to test, and why.",
                path="test-pilots",
                body_name="TestPilot",
            ),
            arguments=(
                Argument(
                    "takes_jobs",
                    "It may take jobs after its checks",
                    ArgumentType.YES_NO,
                    default=False,
                    in_api="It takes jobs after its checks, as any pilot of the queue.",
                ),
            ),
        ),
        Action(
            "connect",
            "Test connection",
            (),
            one_alone(ask_connection_test),
            page=OnPage(
                "A worker asks the batch system for its places, with the settings and the login "
                "that pilots are sent with. Nothing is sent or changed there. The result is told "
                "on this page, within a minute.",
                "is being tested",
            ),
            api=InApi(
                "Test the connection to a queue's batch system",
                "A worker asks it within a minute; `connection_test` of the queue's pressure tells "
                "what came of it. A second request meanwhile is refused.",
                body="Why it is tested.",
                path="connection-tests",
                is_later=True,
            ),
            needs_reason=False,
        ),
    ),
)
