"""OpenAPI description of the HTTP API: examples, short names of operations, the content type of problems."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

# Of parameters by name, wherever they are.
_PARAMETERS: dict[str, Any] = {
    "user": "anna",
    "user_id": "anna",
    "chat": "anna",
    "run_id": "run_0190a1b2c3d4e5f60718293a4b5c6d7e",
    "step_id": "draft",
    "message_id": "msg_0190a1b2c3d4e5f60718293a4b5c6d7e",
    "artifact_id": "art_0190a1b2c3d4e5f60718293a4b5c6d7e",
    "kem_id": "kem_0190a1b2c3d4e5f60718293a4b5c6d7e",
    "episode_id": "ep_0190a1b2c3d4e5f60718293a4b5c6d7e",
    "task_id": "task_0190a1b2c3d4e5f60718293a4b5c6d7e",
    "webhook_id": "hook_0190a1b2c3d4e5f60718293a4b5c6d7e",
    "key": "chat_history:anna",
    "service": "storage",
    "name": "storage.get_artifact",
}
# Of whole queries and bodies, by operation.
QUERIES: dict[str, dict[str, Any]] = {
    "dialogues_history": {"order": "oldest", "limit": 20},
    "dialogues_attach": {"name": "plan.md"},
    "timeline_timeline": {"since": "2026-03-14T12:00:00Z", "topic": "processed"},
    "timeline_timeline_buckets": {"since": "2026-03-14T12:00:00Z", "buckets": 60},
    "runs_runs": {"status": "running"},
    "artifacts_artifacts": {"type": "final", "limit": 20},
    "artifacts_lineage": {"direction": "up"},
    "memory_search": {"q": "when is the release", "limit": 5},
    "memory_facets": {"q": "release"},
    "episodes_search": {"q": "what did the contractor promise", "chat": "anna", "budget_words": 600},
    "episodes_stats": {"chat": "anna"},
    "episodes_episodes": {"chat": "anna", "layer": "warm"},
    "tasks_tasks": {"user": "anna", "status": "open"},
    "tasks_facts": {"user": "anna"},
}
BODIES: dict[str, dict[str, Any]] = {
    "dialogues_say": {"message": "We moved the launch to Friday. Boris writes the release notes."},
    "dialogues_rate": {"rating": "helpful"},
    "runs_start": {"card_name": "article", "briefs": ["# Tea\n\nTea is made of leaves."]},
    "runs_cancel": {"reason": "It is out of date."},
    "runs_pause": {"reason": "The figures are being checked."},
    "runs_retry": {"from_step": "draft"},
    "runs_rerun": {"params": {"topic": "green tea"}},
    "runs_approve": {"note": "Good as it is."},
    "runs_reject": {"note": "The second paragraph repeats the first."},
    "runs_replace": {"text": "# Tea\n\nTea is made of leaves and water.\n"},
    "artifacts_put": {"file": "@notes.md", "type": "note", "trace": "conv_anna"},
    "memory_add_messages": {
        "user": "anna",
        "messages": [{"role": "user", "content": "The code is 4711.", "time": "2026-03-10T09:00:00Z"}],
    },
    "memory_find": {"user": "anna", "query": "What is the code?"},
    "memory_add": {"content": "The release is in March.", "metadata": {"project_id": "apollo"}, "visibility": "public"},
    "memory_change": {"content": "The release is in May."},
    "episodes_record": {
        "chat": "anna",
        "messages": [{"role": "user", "content": "The code is 4711.", "time": "2026-03-10T09:00:00Z"}],
    },
    "episodes_pack": {"to": "warm"},
    "episodes_anchor": {"reason": "project"},
    "fleet_replay": {"all": True},
    "fleet_drop": {"ids": ["01890a5d-ac96-774b-bcce-b302099a8057"]},
    "fleet_replay_edited": {"data": {"artifact_id": "art_0190a1b2c3d4e5f60718293a4b5c6d7e"}},
    "sim_start": {"profiles": "team_en", "speed": 60, "limit": 20},
    "tasks_add": {"user": "anna", "text": "Send the report", "when": "tomorrow at 9"},
    "tasks_edit": {"when": "on Thursday"},
    "commands_send": {"artifact_id": "art_0190a1b2c3d4e5f60718293a4b5c6d7e"},
    "users_put": {"name": "Алия", "zone": "Asia/Almaty", "language": "ru", "projects": ["apollo"]},
    "histories_append": {"messages": [{"role": "user", "content": "The code is 4711."}]},
    "webhooks_add_webhook": {"url": "https://hooks.example.org/mindbus", "topics": ["process"]},
}


class DescribedApp(FastAPI):
    """An application whose description has examples, and problems under a content type of their own."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            for operation in operations_of(super().openapi()):
                _name_problems(operation)
                _add_examples(operation)
        return super().openapi()


def operation_id(route: APIRoute) -> str:
    """Name of an operation, unique and short: a client that is generated calls its function so."""
    return f"{route.tags[0]}_{route.name}" if route.tags else route.name


def operations_of(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The operations of an OpenAPI document."""
    for path in document["paths"].values():
        yield from path.values()


def _name_problems(operation: dict[str, Any]) -> None:
    """FastAPI describes all that has a model as `application/json`."""
    for response in operation["responses"].values():
        content = response.get("content", {})
        if content.get("application/json", {}).get("schema") == {"$ref": "#/components/schemas/Problem"}:
            content["application/problem+json"] = content.pop("application/json")


def _add_examples(operation: dict[str, Any]) -> None:
    queries = QUERIES.get(operation["operationId"], {})
    for parameter in operation.get("parameters", []):
        examples = _PARAMETERS if parameter["in"] == "path" else queries
        if parameter["name"] in examples:
            parameter["example"] = examples[parameter["name"]]
    if (body := BODIES.get(operation["operationId"])) is not None:
        for content in operation["requestBody"]["content"].values():
            content["example"] = body
