"""Export of the contracts for other languages: JSON Schemas and an AsyncAPI 3.0 document."""

import inspect
import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bus_schema.catalogue import commands, events
from bus_schema.envelope import CONTENT_TYPE, Envelope
from bus_schema.messages import Command, Message
from bus_schema.replies import Reply

_AMQP = "0.3.0"


def exported(version: str) -> dict[str, str]:
    """All exported files: relative name to content."""
    files = {f"schemas/{message.wire.type}.json": _schema(message) for message in [*commands(), *events()]}
    files |= {"schemas/envelope.json": _schema(Envelope), "schemas/reply.json": _schema(Reply)}
    files["asyncapi.json"] = _text(asyncapi(version))
    return files


def asyncapi(version: str) -> dict[str, Any]:
    """The AsyncAPI 3.0 document, with AMQP bindings 0.3.0."""
    models: list[type[BaseModel]] = [Envelope, Reply, *commands(), *events()]
    models += dict.fromkeys(command.wire.result for command in commands())
    _, definitions = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/components/schemas/{model}"
    )
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "MindBus",
            "version": version,
            "description": "Every body is a structured CloudEvents 1.0 envelope; `data` is described per message.",
        },
        "defaultContentType": CONTENT_TYPE,
        "channels": {
            **{
                command.wire.routing_key: _channel(command, "command", f"mb.cmd.{command.wire.service or '{role}'}")
                for command in commands()
            },
            **{event.wire.routing_key: _channel(event, "event", "mb.evt") for event in events()},
            "replies": _reply_channel(),
        },
        "operations": {
            **{command.wire.routing_key.removeprefix("cmd."): _command_operation(command) for command in commands()},
            **{event.wire.routing_key.removeprefix("evt."): _operation(event, "event", "send") for event in events()},
        },
        "components": {
            "schemas": definitions["$defs"],
            "messages": {
                **{message.wire.type: _message(message) for message in [*commands(), *events()]},
                **{_reply_type(command): _reply_message(command) for command in commands()},
            },
        },
    }


def _channel(message: type[Message], kind: str, exchange: str) -> dict[str, Any]:
    return {
        "address": message.wire.routing_key,
        "messages": {kind: {"$ref": f"#/components/messages/{message.wire.type}"}},
        "bindings": _routed(exchange),
    }


def _reply_channel() -> dict[str, Any]:
    replies = {
        _reply_type(command): {"$ref": f"#/components/messages/{_reply_type(command)}"} for command in commands()
    }
    return {"address": None, "messages": replies, "bindings": _routed("mb.reply")}


def _routed(exchange: str) -> dict[str, Any]:
    described = {"name": exchange, "type": "topic", "durable": True, "autoDelete": False}
    return {"amqp": {"is": "routingKey", "exchange": described, "bindingVersion": _AMQP}}


def _operation(message: type[Message], kind: str, action: str) -> dict[str, Any]:
    channel = f"#/channels/{message.wire.routing_key}"
    delivery = {"mandatory": kind == "command", "deliveryMode": 2, "bindingVersion": _AMQP}
    return {
        "action": action,
        "channel": {"$ref": channel},
        "summary": _summary(message),
        "messages": [{"$ref": f"{channel}/messages/{kind}"}],
        "bindings": {"amqp": delivery},
    }


def _command_operation(command: type[Command[Any]]) -> dict[str, Any]:
    reply = {
        "address": {"location": "$message.payload#/mbreplyto"},
        "channel": {"$ref": "#/channels/replies"},
        "messages": [{"$ref": f"#/channels/replies/messages/{_reply_type(command)}"}],
    }
    return _operation(command, "command", "receive") | {"reply": reply}


def _message(message: type[Message]) -> dict[str, Any]:
    return _enveloped(message.wire.type, _summary(message), {"$ref": f"#/components/schemas/{message.__name__}"})


def _reply_message(command: type[Command[Any]]) -> dict[str, Any]:
    result = {"properties": {"result": {"$ref": f"#/components/schemas/{command.wire.result.__name__}"}}}
    data = {"allOf": [{"$ref": "#/components/schemas/Reply"}, result]}
    return _enveloped(_reply_type(command), f"The answer to {command.wire.type}.", data)


def _enveloped(wire_type: str, summary: str, data: dict[str, Any]) -> dict[str, Any]:
    own = {"properties": {"type": {"const": wire_type}, "data": data}}
    return {
        "name": wire_type,
        "summary": summary,
        "contentType": CONTENT_TYPE,
        "payload": {"allOf": [{"$ref": "#/components/schemas/Envelope"}, own]},
        "bindings": {"amqp": {"messageType": wire_type, "bindingVersion": _AMQP}},
    }


def _reply_type(command: type[Command[Any]]) -> str:
    return command.wire.type.replace("mb.cmd.", "mb.rpl.", 1)


def _summary(message: type[Message]) -> str:
    return inspect.cleandoc(message.__doc__ or "").partition("\n")[0]


def _schema(model: type[BaseModel]) -> str:
    return _text({"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()})


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=False) + "\n"
