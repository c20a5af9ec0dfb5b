"""What Kubernetes and KubeRay take, as far as the manifests of ``examples/ray`` use it: a closed JSON Schema.

The names and types are those of KubeRay's API ``ray.io/v1`` (RayJob, RayService, RayCluster; KubeRay 1.5) and of
Kubernetes' pods, written down here by hand. A field that is not listed is refused, and so is one in a wrong place.
"""

from __future__ import annotations

from typing import Any


def _closed(required: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required), "additionalProperties": False}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


TEXT, WHOLE, FLAG = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
QUANTITY = {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(m|Ki|Mi|Gi|Ti)?$"}
AMOUNTS = _closed(("cpu", "memory"), cpu=QUANTITY, memory=QUANTITY)

CONTAINER = _closed(
    ("name", "image", "resources"),
    name=NAME,
    image=TEXT,
    command=_list(TEXT),
    args=_list(TEXT),
    env=_list(_closed(("name", "value"), name=TEXT, value=TEXT)),
    ports=_list(_closed(("containerPort", "name"), containerPort=WHOLE, name={**NAME, "maxLength": 15})),
    resources=_closed(("requests", "limits"), requests=AMOUNTS, limits=AMOUNTS),
    volumeMounts=_list(_closed(("name", "mountPath"), name=NAME, mountPath=TEXT, readOnly=FLAG)),
)

VOLUME = {
    **_closed(
        ("name",),
        name=NAME,
        persistentVolumeClaim=_closed(("claimName",), claimName=NAME, readOnly=FLAG),
        emptyDir=_closed(sizeLimit=QUANTITY, medium={"enum": ["", "Memory"]}),
        configMap=_closed(("name",), name=NAME),
    ),
    "minProperties": 2,
    "maxProperties": 2,
}

POD_TEMPLATE = _closed(
    ("spec",),
    metadata=_closed(labels=TEXTS, annotations=TEXTS),
    spec=_closed(
        ("containers",),
        containers=_list(CONTAINER),
        initContainers=_list(CONTAINER),
        volumes=_list(VOLUME),
        securityContext=_closed(fsGroup=WHOLE, runAsUser=WHOLE, runAsNonRoot=FLAG),
        nodeSelector=TEXTS,
    ),
)

CLUSTER = _closed(
    ("headGroupSpec",),
    rayVersion=TEXT,
    enableInTreeAutoscaling=FLAG,
    autoscalerOptions=_closed(
        idleTimeoutSeconds=WHOLE, upscalingMode={"enum": ["Default", "Aggressive", "Conservative"]}
    ),
    headGroupSpec=_closed(("rayStartParams", "template"), rayStartParams=TEXTS, template=POD_TEMPLATE),
    workerGroupSpecs=_list(
        _closed(
            ("groupName", "minReplicas", "maxReplicas", "rayStartParams", "template"),
            groupName=NAME,
            replicas=WHOLE,
            minReplicas=WHOLE,
            maxReplicas=WHOLE,
            numOfHosts=WHOLE,
            rayStartParams=TEXTS,
            template=POD_TEMPLATE,
        )
    ),
)

_METADATA = _closed(("name",), name=NAME, labels=TEXTS, annotations=TEXTS)


def _kind(version: str, kind: str, **fields: Any) -> dict[str, Any]:
    named = {"apiVersion": {"const": version}, "kind": {"const": kind}, "metadata": _METADATA}
    return _closed(("apiVersion", "kind", "metadata", *fields), **named, **fields)


KINDS = {
    "ConfigMap": _kind("v1", "ConfigMap", data=TEXTS),
    "RayJob": _kind(
        "ray.io/v1",
        "RayJob",
        spec=_closed(
            ("entrypoint", "rayClusterSpec"),
            entrypoint=TEXT,
            rayClusterSpec=CLUSTER,
            activeDeadlineSeconds={"type": "integer", "minimum": 1},
            backoffLimit=WHOLE,
            runtimeEnvYAML=TEXT,
            shutdownAfterJobFinishes=FLAG,
            submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"]},
            suspend=FLAG,
            ttlSecondsAfterFinished=WHOLE,
        ),
    ),
    "RayService": _kind(
        "ray.io/v1",
        "RayService",
        spec=_closed(
            ("serveConfigV2", "rayClusterConfig"),
            serveConfigV2=TEXT,
            rayClusterConfig=CLUSTER,
            excludeHeadPodFromServeSvc=FLAG,
        ),
    ),
}
"""Schemas of whole objects, by kind."""
