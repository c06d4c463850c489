"""A service's no, before it is put into the bus's words."""

from typing import ClassVar

from bus_schema.replies import Code


class Refusal(Exception):
    """The service does not do this, now or later; nothing has been written. What it says is its docstring.

    `details` go to the asker; `is_denied`, which would tell the absent from the hidden, goes to the log alone.
    """

    code: ClassVar[Code] = Code.INVALID

    def __init__(self, *, is_denied: bool = False, **details: object) -> None:
        super().__init__(type(self).__doc__)
        self.is_denied = is_denied
        self.details = details
