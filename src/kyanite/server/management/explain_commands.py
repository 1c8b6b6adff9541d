"""The command that says why a request was refused."""

from kyanite.model.requests.refusals import Explanation
from kyanite.server.management.command import Command, CommandRefused, CommandRequest, Management


class ExplainRequest(CommandRequest, frozen=True):
    request_id: str
    account: str | None = None
    """Only if the request was for this account."""


async def explain(management: Management, request: ExplainRequest) -> Explanation:
    assert management.questions is not None
    found = await management.questions.explain(request.request_id, request.account)
    if found is None:
        whose = "" if request.account is None else f" of account {request.account}"
        raise CommandRefused(
            f"No refused request{whose} with the id {request.request_id!r} is known: it was not refused, or it is too "
            "long ago (each worker keeps its last 10,000, until it ends)."
        )
    return found


COMMANDS = (Command("explain", ExplainRequest, explain),)
