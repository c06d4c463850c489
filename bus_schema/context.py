"""What is said to the context agent."""

from bus_schema.identities import UserId
from bus_schema.messages import Command, Nothing


class ReviewDesk(Command[Nothing], domain="context", action="review_desk"):
    """Decide anew about what waits for a user; whatever is not due yet goes on waiting."""

    user_id: UserId
