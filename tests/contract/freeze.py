"""Freezes a sample envelope of a new message: python -m tests.contract.freeze WIRE_TYPE JSON_DATA."""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import bus_schema.catalogue  # noqa: F401  # defines every message
from bus_schema.envelope import Envelope, Kind
from bus_schema.messages import Command, message_class

GOLDEN = Path(__file__).parent / "golden"
_STORY = "0190f1f4-7c00-7000-8000-000000000000"


def freeze(wire_type: str, data: str) -> Path:
    """Write the golden file of a type that has none. Raises UnknownType, ValidationError, FileExistsError."""
    kind = message_class(wire_type)
    message = kind.model_validate(json.loads(data))
    is_command = issubclass(kind, Command)
    envelope = Envelope(
        id=_STORY[:-1] + "1",
        source="/mb/cli/1a2b3c4d",
        type=wire_type,
        time=datetime(2026, 3, 10, 9, tzinfo=UTC),
        correlationid=_STORY,
        mbkind=Kind.COMMAND if is_command else Kind.EVENT,
        mbrequester="user.local",
        mbreplyto="reply.cli.1a2b3c4d" if is_command else None,
        data=message.model_dump(mode="json", exclude_unset=True),
    )
    path = GOLDEN / f"{wire_type}.json"
    with path.open("x") as file:
        file.write(json.dumps(json.loads(envelope.to_wire()), indent=2, ensure_ascii=False) + "\n")
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wire_type", help="such as mb.cmd.history.count.v1")
    parser.add_argument("data", help='the fields as JSON, such as \'{"key": "chat_history:anna"}\'')
    arguments = parser.parse_args()
    print(freeze(arguments.wire_type, arguments.data))
