"""The demo has a world of its own, whatever is set for another fleet."""

from config.settings import FleetSettings
from mindbus_fleet.cli.demo import demo_settings

MODELS = {"llm_base_url", "embedding_base_url"}
FILES_OF_USERS = {"config_dir", "sim_dir"}


def test_no_server_and_no_folder_of_another_fleet_is_reached() -> None:
    places = {name for name in FleetSettings.model_fields if name.endswith(("_url", "_dir"))} - FILES_OF_USERS
    set_elsewhere = FleetSettings().model_copy(
        update=dict.fromkeys(places - {"data_dir"}, "elsewhere")
        | {"tenant": "acme", "pgvector": True, "partitions": "dialogue=3", "artifacts_access": "presigned"}
    )

    environment = demo_settings(set_elsewhere).environment()

    found = {name for name, value in environment.items() if value == "elsewhere"}
    assert found == {f"MINDBUS_{name.upper()}" for name in MODELS}
    assert "MINDBUS_TENANT" not in environment
    assert (environment["MINDBUS_PGVECTOR"], environment["MINDBUS_PARTITIONS"]) == ("False", "")
    assert environment["MINDBUS_ARTIFACTS_ACCESS"] == "auto"
