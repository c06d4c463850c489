"""Commands for the context agent."""

from bus_schema.identities import UserId
from bus_schema.messages import Command, Nothing


class ReviewDesk(Command[Nothing], domain="context", action="review_desk"):
    """Decide again about the notifications waiting for a user; those not yet due keep waiting."""

    user_id: UserId
