"""The manifests in ``examples/ray`` are ones that KubeRay and Ray Serve take, and their program runs."""

from __future__ import annotations

import copy
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from constrain.server.config import read_config
from tests.support import for_each
from tests.support.kuberay import KINDS

yaml = pytest.importorskip("yaml")

FOLDER = Path(__file__).parents[2] / "examples" / "ray"
OBJECTS: list[dict[str, Any]] = [
    found for name in ("job.yaml", "service.yaml") for found in yaml.safe_load_all((FOLDER / name).read_text("utf-8"))
]
JOB, CONFIG, SERVICE = OBJECTS
CLUSTERS: list[dict[str, Any]] = [JOB["spec"]["rayClusterSpec"], SERVICE["spec"]["rayClusterConfig"]]
GROUPS = [group for each in CLUSTERS for group in (each["headGroupSpec"], *each["workerGroupSpecs"])]
PODS: list[dict[str, Any]] = [group["template"] for group in GROUPS]


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]


def refused(found: dict[str, Any]) -> list[str]:
    judge = jsonschema.Draft202012Validator(KINDS[found["kind"]])
    return [f"{error.json_path}: {error.message}" for error in judge.iter_errors(found)]


@pytest.mark.parametrize("found", OBJECTS, ids=lambda found: str(found["kind"]))
def test_a_manifest_has_the_fields_of_its_kind(found: dict[str, Any]) -> None:
    assert refused(found) == []


@for_each(
    "path, value",
    ("entryPoint", "python job.py"),
    ("shutdownAfterJobFinishes", "true"),
    ("rayClusterSpec.headGroupSpec.rayStartParams.num-cpus", 0),
    ("rayClusterSpec.headGroupSpec.template.spec.container", []),
    ("rayClusterSpec.headGroupSpec.template.spec.volumes", [{"name": "data"}]),
)
def test_a_mistake_in_a_manifest_is_found(path: str, value: object) -> None:
    wrong = copy.deepcopy(JOB)
    *parents, name = path.split(".")
    place = wrong["spec"]
    for parent in parents:
        place = place[parent]
    place[name] = value
    assert len(refused(wrong)) == 1


def test_a_program_of_kubernetes_schemas_takes_the_pods() -> None:
    judge = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate (110 MB)")
    for pod in PODS:
        judge.validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, **pod}, "1.33", strict=True)
    judge.validate(CONFIG, "1.33", strict=True)


def test_ray_serve_takes_its_part() -> None:
    schema = pytest.importorskip("ray.serve.schema")
    written = yaml.safe_load(SERVICE["spec"]["serveConfigV2"])
    read = schema.ServeDeploySchema(**written)
    assert [one.import_path for one in read.applications] == ["constrain.ray:app_builder"]
    unknown = set(written["applications"][0]) - set(schema.ServeApplicationSchema.model_fields)
    assert unknown == set()


def test_the_arguments_are_those_of_the_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    from constrain.ray import app_builder

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "nodes", lambda: [{"Alive": True, "Resources": {"CPU": 4}}] * 2)
    (application,) = yaml.safe_load(SERVICE["spec"]["serveConfigV2"])["applications"]
    arguments = application["args"]
    folder, _, file = arguments["config"].rpartition("/")
    (mount,) = {
        mount["mountPath"] for pod in PODS for each in containers(pod) for mount in each["volumeMounts"]
        if mount["name"] == "config"
    }  # fmt: skip
    assert folder == mount
    (tmp_path / file).write_text(CONFIG["data"][file], encoding="utf-8")
    built: Any = app_builder({**arguments, "config": str(tmp_path / file)})
    (replicas,) = built._bound_deployment.init_args
    config, settings = replicas._bound_deployment.init_args
    assert config.threads == arguments["cpus_per_replica"]
    assert settings.hosts.answers_private


def test_the_server_reads_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "server.toml").write_text(CONFIG["data"]["server.toml"], encoding="utf-8")
    config = read_config(tmp_path / "server.toml", {})
    folders = {mount["mountPath"] for pod in PODS for each in containers(pod) for mount in each["volumeMounts"]}
    assert [str(model.path.parent) in folders for model in config.models] == [True]


@for_each("pod", PODS)
def test_a_pod_has_what_its_containers_use(pod: dict[str, Any]) -> None:
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for each in containers(pod) for mount in each["volumeMounts"]} == volumes
    for each in containers(pod):
        amounts = each["resources"]
        assert amounts["requests"] == amounts["limits"], "equal ones make the pod Guaranteed"
        assert amounts["limits"]["cpu"].isdecimal(), "whole CPUs can be the pod's own"


def test_image_and_manifests_have_one_version_of_ray() -> None:
    image = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    versions = {*re.findall(r"^FROM rayproject/ray:([\d.]+)-", image, re.MULTILINE)}
    assert {each["rayVersion"] for each in CLUSTERS} == versions
    images = {each["image"] for pod in PODS for each in containers(pod)}
    assert re.findall(r"docker build .* -t (\S+)", image) == list(images)


def test_the_entrypoint_calls_the_program_of_the_image() -> None:
    command = shlex.split(JOB["spec"]["entrypoint"])
    copied = re.search(r"COPY \S+ examples/ray/(\S+) (\S+)", (FOLDER / "Dockerfile").read_text(encoding="utf-8"))
    assert copied is not None
    assert command[:2] == ["python", copied[2]]
    options = {part for part in command if part.startswith("--")}
    assert options <= set(re.findall(r"\"(--\w+)\"", (FOLDER / copied[1]).read_text(encoding="utf-8")))


@pytest.mark.long
def test_the_program_answers_and_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "people").mkdir()
    for number, about in enumerate(["Ada is 36.", "Bo is 7."]):
        pq.write_table(pa.table({"id": [number], "about": [about]}), tmp_path / "people" / f"{number}.parquet")
        folders = [str(tmp_path / name) for name in ("people", "answers", "checkpoint")]
        sizes = ["--actors", "1", "1", "--context", "512"]
        done = subprocess.run(
            [sys.executable, str(FOLDER / "job.py"), *folders, *sizes],
            cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        files = [pq.read_table(path) for path in (tmp_path / "answers").glob("*.parquet")]
        assert sorted(row["id"] for table in files for row in table.to_pylist()) == list(range(number + 1))
