"""What a command says when it cannot do what it was asked."""

from bus_schema.replies import Code


class Failed(Exception):
    """The command was understood but could not be carried out; exit code 1."""

    def __init__(self, message: str, code: Code = Code.INTERNAL) -> None:
        super().__init__(message)
        self.code = code


class Misused(Exception):
    """The command line itself is wrong; exit code 2."""

    code = Code.INVALID
