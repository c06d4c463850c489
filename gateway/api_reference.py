"""`python -m gateway.api_reference` writes the reference of the HTTP API: docs/reference/http.md and openapi.json."""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import urlencode

from gateway.app import describe

_FOLDER = Path("docs/reference")
_HEADER = """# The HTTP API

<!-- made by `python -m gateway.api_reference` -->

The [gateway](../how-to/gateway.md) serves it, `GET /api/openapi.json` describes it ([the document](openapi.json),
OpenAPI 3.1), and [a TypeScript client](../how-to/gateway.md#a-typescript-client) is made of that. The examples take
`curl` 7.82 or newer, the address in `$U` and the token in `$TOKEN`. Errors are `application/problem+json`.
"""


def reference_of(document: dict[str, Any]) -> str:
    """The page of an OpenAPI document, in Markdown."""
    lines = [_HEADER]
    operations = [(path, way, each) for path, ways in document["paths"].items() for way, each in ways.items()]
    for tag, of_tag in groupby(operations, lambda found: found[2].get("tags", ["other"])[0]):
        lines += [f"## {tag.replace('_', ' ').capitalize()}", ""]
        for path, way, operation in of_tag:
            lines += _told(path, way.upper(), operation)
    return "\n".join(lines)


def _told(path: str, way: str, operation: dict[str, Any]) -> Iterator[str]:
    yield from (f"### `{way} {path}`", "", operation.get("description", operation["summary"]), "")
    parameters = operation.get("parameters", [])
    if parameters:
        yield from ("| parameter | in | type | |", "|---|---|---|---|")
        for each in parameters:
            told = each.get("description", "") or each["schema"].get("description", "")
            need = "required" if each.get("required") else _default(each["schema"])
            meaning = ". ".join(filter(None, (need, told)))
            yield f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} | {meaning} |"
        yield ""
    yield from ("```sh", _curl(path, way, operation), "```", "")
    answers = [
        f"{status}: {_answer(answer)}" for status, answer in operation["responses"].items() if status.startswith("2")
    ]
    yield from (f"Answers {'; '.join(answers)}.", "")


def _curl(path: str, way: str, operation: dict[str, Any]) -> str:
    parameters = operation.get("parameters", [])
    given = {each["name"]: each["example"] for each in parameters if "example" in each}
    within = {each["name"] for each in parameters if each["in"] == "path"}
    for name in within:
        path = path.replace(f"{{{name}}}", str(given.get(name, name)))
    query = urlencode({name: value for name, value in given.items() if name not in within})
    address = f'"$U{path}{f"?{query}" if query else ""}"'
    content = operation.get("requestBody", {}).get("content", {})
    sends = [_sent(kind, about.get("example")) for kind, about in content.items()]
    # curl posts by itself where it is given something to send.
    method = "" if way == ("POST" if sends else "GET") else f" -X {way}"
    return " ".join(filter(None, (f'curl --oauth2-bearer "$TOKEN"{method}', address, *sends)))


def _sent(kind: str, example: Any) -> str:
    if kind == "multipart/form-data":
        return " ".join(f"-F {quote(f'{name}={value}')}" for name, value in example.items())
    if kind == "application/json":
        return f"--json {quote(json.dumps(example or {}, ensure_ascii=False))}"
    return "--data-binary @plan.md"


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"] if each.get("type") != "null")
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"several of: {_type(schema['items'])}"
    return str(schema.get("format", schema.get("type", "any")))


def _default(schema: dict[str, Any]) -> str:
    default = schema.get("default")
    return "" if default is None else f"default `{json.dumps(default)}`"


def _answer(answer: dict[str, Any]) -> str:
    for kind, about in answer.get("content", {}).items():
        return _type(about.get("schema", {})) if kind == "application/json" else f"`{kind}`"
    return str(answer["description"]).lower()


def files() -> dict[Path, str]:
    """The reference as files of a folder."""
    document = describe().openapi()
    return {
        Path("openapi.json"): json.dumps(document, ensure_ascii=False, indent=1) + "\n",
        Path("http.md"): reference_of(document),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the files are out of date")
    parser.add_argument("--output", type=Path, default=_FOLDER, help="the folder")
    arguments = parser.parse_args()
    outdated = {name: text for name, text in files().items() if _read(arguments.output / name) != text}
    if arguments.check and outdated:
        sys.exit(f"{', '.join(map(str, outdated))}: run `python -m gateway.api_reference`")
    for name, text in outdated.items():
        (arguments.output / name).write_text(text, encoding="utf-8")


def _read(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None


if __name__ == "__main__":
    main()
