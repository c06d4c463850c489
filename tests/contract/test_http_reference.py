"""The reference of the HTTP API is as the code is, and every example in it is one that the API takes."""

from pathlib import Path

import jsonschema_rs

from gateway.api_description import BODIES, QUERIES, operations_of
from gateway.api_reference import files
from gateway.app import describe

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


def test_the_reference_is_up_to_date() -> None:
    for name, text in files().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, "run `python -m gateway.api_reference`"


def test_every_body_has_an_example_that_fits_its_schema() -> None:
    document = describe().openapi()
    operations = [*operations_of(document)]
    names = [operation["operationId"] for operation in operations]
    within = {"components": document["components"]}
    for operation in operations:
        for kind, body in operation.get("requestBody", {}).get("content", {}).items():
            if kind == "application/json" and "example" in body:
                jsonschema_rs.Draft202012Validator(within | body["schema"]).validate(body["example"])
            elif kind == "application/json":
                assert not operation["requestBody"].get("required"), f"{operation['operationId']}: give an example"

    assert len(set(names)) == len(names)
    assert document["openapi"].startswith("3.1")


def test_no_example_is_of_an_operation_that_is_gone() -> None:
    names = {operation["operationId"] for operation in operations_of(describe().openapi())}

    assert BODIES.keys() | QUERIES.keys() <= names
