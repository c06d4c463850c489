"""compose/kubernetes renders, fits the schemas of Kubernetes, and says of each worker what compose.yaml says."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import utils

from mindbus.bus.topology import commands_queue
from tests.installed import FLEET

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "compose" / "kubernetes"
MODULES = ROOT / ".venv" / "node" / "node_modules"
FOLDERS = ("base", "overlays/bundled", "overlays/external")
# The newest that the package knows, and two that clusters still run.
VERSIONS = (kubernetes_validate.latest_version(), "1.35", "1.33")
# Custom resources of which a registry has the schema, by the package; of RabbitMQ's operator none has it.
SCHEMAS = {"keda.sh": "keda", "postgresql.cnpg.io": "cloudnative-pg"}
UNVALIDATED = {"rabbitmq.com"}
_CHECK = """
import { readFileSync } from "node:fs";
for (const [module, resource] of JSON.parse(readFileSync(0))) {
  const path = `@kubernetes-models/${module}/${resource.apiVersion}/${resource.kind}`;
  const model = new (await import(path))[resource.kind](resource);
  const name = `${resource.kind} ${resource.metadata.name}`;
  try { model.validate(); } catch (error) { console.log(`${name}: ${error.message}`); }
}
"""

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is missing")


@cache
def rendered(folder: str) -> list[dict[str, Any]]:
    """Resources of a folder, as `kubectl apply -k` would send them."""
    command = ("kubectl", "kustomize", str(MANIFESTS / folder))
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [resource for resource in yaml.safe_load_all(done.stdout) if resource]


def of_kind(*kinds: str, folder: str = "base") -> Iterator[dict[str, Any]]:
    return (resource for resource in rendered(folder) if resource["kind"] in kinds)


def workers(folder: str = "base") -> dict[str, dict[str, Any]]:
    """Deployments and StatefulSets of the workers, by the worker."""
    found = of_kind("Deployment", "StatefulSet", folder=folder)
    return {name: each for each in found if (name := each["metadata"].get("labels", {}).get("mindbus/worker"))}


def group_of(resource: dict[str, Any]) -> str:
    return str(resource["apiVersion"].partition("/")[0])


schema_contents = cache(utils.schema_contents)


@cache
def composed() -> dict[str, Any]:
    stack = yaml.safe_load((ROOT / "compose" / "compose.yaml").read_text())
    return {name: service for name, service in stack["services"].items() if name in FLEET}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_what_kubernetes_knows_fits_its_schemas(folder: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # It reads the schema, of megabytes, anew for each resource.
    monkeypatch.setattr(utils, "schema_contents", schema_contents)
    custom = set(SCHEMAS) | UNVALIDATED
    known = [resource for resource in rendered(folder) if group_of(resource) not in custom]
    assert len(known) > len(FLEET)
    for resource in known:
        kubernetes_validate.validate(resource, version, strict=True)


def test_a_misspelt_field_would_be_found() -> None:
    (broken,) = (json.loads(json.dumps(each)) for name, each in workers().items() if name == "storage")
    broken["spec"]["replica"] = broken["spec"].pop("replicas")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[0], strict=True)


def test_custom_resources_fit_the_schemas_that_there_are() -> None:
    if shutil.which("node") is None or not (MODULES / "@kubernetes-models").is_dir():
        pytest.skip("`make setup-tests` installs the schemas where Node is")
    custom = [
        (SCHEMAS[group_of(resource)], resource)
        for resource in rendered("overlays/bundled")
        if group_of(resource) in SCHEMAS
    ]
    assert {module for module, _ in custom} == set(SCHEMAS.values())
    broken = json.loads(json.dumps(custom[0]))
    broken[1]["metadata"]["name"], broken[1]["spec"] = "broken", {"triggers": 3}

    command = ("node", "--input-type=module", "--eval", _CHECK)
    said = subprocess.run(
        command,
        input=json.dumps([*custom, broken]),
        cwd=MODULES.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout

    assert [line.split(":")[0] for line in said.splitlines()] == [f"{broken[1]['kind']} broken"]


def test_nothing_else_goes_unvalidated() -> None:
    groups = {group_of(resource) for folder in FOLDERS for resource in rendered(folder)}
    own = {"v1", "apps", "policy", "networking.k8s.io"}
    assert groups - own - set(SCHEMAS) == UNVALIDATED


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_worker_of_the_fleet_is_there_with_its_own_secret(folder: str) -> None:
    found = workers(folder)
    assert set(found) == set(FLEET)
    for name, each in found.items():
        pod = each["spec"]["template"]
        assert each["spec"]["selector"]["matchLabels"] == {"mindbus/worker": name}
        assert pod["metadata"]["labels"]["mindbus/worker"] == name
        secrets = {volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume}
        assert secrets == {f"mindbus-{name.replace('_', '-')}"}


def test_models_and_redis_are_for_those_whom_compose_gives_them() -> None:
    labels = {name: each["spec"]["template"]["metadata"]["labels"] for name, each in workers().items()}
    models = {name for name, its in composed().items() if "MINDBUS_LLM_MODEL" in its["environment"]}
    redis = {name for name, its in composed().items() if "redis" in its["depends_on"]}

    assert {name for name, its in labels.items() if "mindbus/model" in its} == models
    assert {name for name, its in labels.items() if "mindbus/redis" in its} == redis
    told = {
        name
        for name, each in workers().items()
        if any("model" in str(source) for source in each["spec"]["template"]["spec"]["containers"][0]["envFrom"])
    }
    assert told == models


def test_no_worker_may_more_than_the_strictest_profile_allows() -> None:
    for each in workers().values():
        pod = each["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)


def test_a_machine_that_is_emptied_takes_one_of_each_worker_at_a_time() -> None:
    single = {name for name, each in workers().items() if each["spec"].get("replicas") == 1}
    guarded = {each["spec"]["selector"]["matchLabels"]["mindbus/worker"] for each in of_kind("PodDisruptionBudget")}
    assert guarded == set(FLEET) - single


def test_what_grows_with_its_queue_is_a_worker_and_has_no_number_of_its_own() -> None:
    found = list(of_kind("ScaledObject"))
    assert found
    for each in found:
        worker = each["spec"]["scaleTargetRef"]["name"]
        (trigger,) = each["spec"]["triggers"]
        assert trigger["metadata"]["queueName"] == commands_queue(worker)
        assert "replicas" not in workers()[worker]["spec"]
        assert workers()[worker]["kind"] == each["spec"]["scaleTargetRef"]["kind"]
