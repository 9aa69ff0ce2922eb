"""Faults of Kubernetes objects: by the published schemas, and those that schemas do not cover. All functions return lists of messages."""

import functools
import importlib
import json
import re

import jsonschema
import kubernetes_validate
import kubernetes_validate.utils

# Otherwise it reads megabytes of definitions again for each object.
kubernetes_validate.utils.schema_contents = functools.lru_cache(maxsize=None)(kubernetes_validate.utils.schema_contents)

TEXT, TEXTS = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}
DURATION = {"type": "string", "pattern": r"^([0-9]+(ms|s|m|h|d))+$"}


def closed(required, **properties):
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


def of(items):
    return {"type": "array", "minItems": 1, "items": items}


SELECTOR = closed((), matchLabels=TEXTS, matchExpressions=of(closed(
    ("key", "operator"), key=TEXT, operator={"enum": ["In", "NotIn", "Exists", "DoesNotExist"]}, values=of(TEXT))))
# The parts of the Prometheus operator's kinds that we use.
OPERATOR_SPECS = {
    "ServiceMonitor": closed(("selector", "endpoints"), selector=SELECTOR, endpoints=of(closed(
        ("port",), port=TEXT, path=TEXT, interval=DURATION, scrapeTimeout=DURATION))),
    "PodMonitor": closed(("selector", "podMetricsEndpoints"), selector=SELECTOR, podMetricsEndpoints=of(closed(
        ("port",), port=TEXT, path=TEXT, interval=DURATION, scrapeTimeout=DURATION))),
    "PrometheusRule": closed(("groups",), groups=of(closed(("name", "rules"), name=TEXT, interval=DURATION, rules=of({
        "oneOf": [
            closed(("alert", "expr"), alert=TEXT, expr=TEXT, labels=TEXTS, annotations=TEXTS, keep_firing_for=DURATION,
                   **{"for": DURATION}),
            closed(("record", "expr"), record=TEXT, expr=TEXT, labels=TEXTS)]})))),
}
# The parts of KEDA's kinds that we use.
COUNT = {"type": "integer", "minimum": 0}
KEDA_SPECS = {
    "ScaledObject": closed(("scaleTargetRef", "triggers"), minReplicaCount=COUNT, maxReplicaCount=COUNT,
                           scaleTargetRef=closed(("name",), apiVersion=TEXT, kind=TEXT, name=TEXT),
                           advanced=closed((), horizontalPodAutoscalerConfig=closed((), behavior={"type": "object"})),
                           triggers=of(closed(("type", "metadata"), type={"const": "prometheus"}, metricType={"enum": ["AverageValue", "Value"]},
                                              metadata=closed(("serverAddress", "query", "threshold"), serverAddress=TEXT, query=TEXT,
                                                              threshold={"type": "string", "pattern": r"^[0-9.]+$"})))),
}
# The parts of the Gateway API's routes that we use.
PARENTS = of(closed(("name",), name=TEXT, namespace=TEXT))
BACKENDS = of(closed(("name", "port"), name=TEXT, port={"type": "integer", "minimum": 1, "maximum": 65535}))


def route(match):
    return closed(("parentRefs", "rules"), parentRefs=PARENTS, hostnames=of(TEXT),
                  rules=of(closed(("backendRefs",), matches=of(match), backendRefs=BACKENDS)))


ROUTE_SPECS = {
    "HTTPRoute": route(closed(("path",), path=closed(("type", "value"), type={"enum": ["Exact", "PathPrefix"]}, value=TEXT))),
    "GRPCRoute": route(closed(("method",), method=closed(("service",), service=TEXT, method=TEXT))),
}


def at(item):
    return f"{item['kind']}/{item['metadata']['name']}"


def schema_faults(item, version):
    specs = {"monitoring.coreos.com/v1": OPERATOR_SPECS, "gateway.networking.k8s.io/v1": ROUTE_SPECS,
             "keda.sh/v1alpha1": KEDA_SPECS}.get(item["apiVersion"])
    if specs:
        return [f"{at(item)}: {error.message}" for error in jsonschema.Draft7Validator(specs[item["kind"]]).iter_errors(item["spec"])]
    if item["apiVersion"].startswith("serving.kserve.io/"):
        group, kind = item["apiVersion"].split("/")[1].capitalize(), item["kind"]
        return [f"{at(item)}: {fault}" for fault in model_faults(item, f"{group}{kind}", "")]
    return schema_faults_of_manifest(json.dumps(item), version)


@functools.lru_cache(maxsize=None)
def schema_faults_of_manifest(manifest, version):
    item = json.loads(manifest)
    try:
        kubernetes_validate.validate(item, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{at(item)} in {version}: {'.'.join(map(str, error.path))}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError as error:
        return [f"{at(item)}: {error.message}"]
    return []


def model_faults(value, type_name, path):
    """Checks value against a class of KServe's or Kubernetes' Python client: only its fields, with their types."""
    type_name = re.sub(r"^dict\((.*)\)$", r"Dict[\1]", re.sub("^list", "List", type_name))
    if type_name.startswith("List["):
        if not isinstance(value, list):
            return [f"{path}: no list"]
        return [fault for i, it in enumerate(value) for fault in model_faults(it, type_name[5:-1], f"{path}[{i}]")]
    if type_name.startswith("Dict["):
        inner = type_name[5:-1].split(", ", 1)[1]
        if not isinstance(value, dict):
            return [f"{path}: no object"]
        return [fault for key, it in value.items() for fault in model_faults(it, inner, f"{path}.{key}")]
    plain = {"str": str, "int": int, "bool": bool}.get(type_name)
    if plain:
        return [] if type(value) is plain else [f"{path}: {value!r} is no {type_name}"]
    if type_name in ("object", "datetime", "IntOrString", "ResourceQuantity"):
        return []
    model = next((getattr(module, type_name) for module in map(importlib.import_module, ("kserve.models", "kubernetes.client"))
                  if hasattr(module, type_name)), None)
    if model is None:
        return [f"{path}: the clients have no class {type_name}"]
    if not isinstance(value, dict):
        return [f"{path}: no object"]
    types = {json_name: model.openapi_types[name] for name, json_name in model.attribute_map.items()}
    faults = [f"{path}.{key}: there is no such field" for key in value if key not in types]
    return faults + [fault for key, it in value.items() if key in types
                     for fault in model_faults(it, types[key], f"{path}.{key}")]


def matches(selector, labels):
    operators = {"In": lambda have, want: have in want, "NotIn": lambda have, want: have not in want,
                 "Exists": lambda have, _: have is not None, "DoesNotExist": lambda have, _: have is None}
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        operators[it["operator"]](labels.get(it["key"]), it.get("values")) for it in selector.get("matchExpressions", []))


def workloads(items):
    return [item for item in items if item["kind"] in ("Deployment", "StatefulSet", "Job")]


def containers(item):
    spec = item["spec"]["template"]["spec"]
    return spec.get("initContainers", []) + spec["containers"]


def tie_faults(items):
    """Checks names and labels by which the objects of a set refer to each other."""
    pods = [item["spec"]["template"]["metadata"]["labels"] for item in workloads(items)]
    served = [item for item in workloads(items) if item["kind"] != "Job"]
    ports = {port["name"] for item in served for it in containers(item) for port in it.get("ports", [])}
    names = {(item["kind"], item["metadata"]["name"]) for item in items}
    faults = []
    for item in items:
        spec = item.get("spec", {})
        if len(item["metadata"]["name"]) > 63:
            faults.append(f"{at(item)}: the name is too long")
        if item["kind"] in ("Deployment", "StatefulSet"):
            if not matches(spec["selector"], spec["template"]["metadata"]["labels"]):
                faults.append(f"{at(item)}: the selector does not match its own pods")
        if item["kind"] == "StatefulSet" and ("Service", spec["serviceName"]) not in names:
            faults.append(f"{at(item)}: no service {spec['serviceName']}")
        if item["kind"] == "Service":
            if not any(matches({"matchLabels": spec["selector"]}, labels) for labels in pods):
                faults.append(f"{at(item)}: selects no pods")
            faults += [f"{at(item)}: no port {it['targetPort']}" for it in spec["ports"] if it["targetPort"] not in ports]
        if item["kind"] == "PodDisruptionBudget" and not any(matches(spec["selector"], labels) for labels in pods):
            faults.append(f"{at(item)}: selects no pods")
        if item["kind"] == "NetworkPolicy":
            if not any(matches(spec["podSelector"], labels) for labels in pods):
                faults.append(f"{at(item)}: selects no pods")
            faults += [f"{at(item)}: no port {port['port']}" for rule in spec["ingress"] for port in rule.get("ports", [])
                       if port["port"] not in ports]
        if item["kind"] == "PodMonitor":
            wanted = {endpoint["port"] for endpoint in spec["podMetricsEndpoints"]}
            if not any(matches(spec["selector"], labels) for labels in pods) or not wanted <= ports:
                faults.append(f"{at(item)}: selects no pods, or a port that they do not have")
        if item["kind"] in ("HorizontalPodAutoscaler", "ScaledObject"):
            target = spec["scaleTargetRef"]
            faults += [] if (target["kind"], target["name"]) in names else [f"{at(item)}: no {target}"]
        if item["kind"] == "ServiceMonitor":
            seen = [it for it in items if it["kind"] == "Service" and matches(spec["selector"], it["metadata"]["labels"])]
            wanted = {endpoint["port"] for endpoint in spec["endpoints"]}
            if not seen or any(not wanted <= {port["name"] for port in it["spec"]["ports"]} for it in seen):
                faults.append(f"{at(item)}: selects no service, or one without its port")
    return faults


def pod_faults(item, flags, outside=()):
    """Checks a pod's template; flags: command → its known flags; outside: claims that are not in the set."""
    spec, faults = item["spec"]["template"]["spec"], []
    volumes = {it["name"] for it in spec.get("volumes", [])}
    volumes |= {it["metadata"]["name"] for it in item["spec"].get("volumeClaimTemplates", [])}
    for container in containers(item):
        where = f"{at(item)} {container['name']}"
        ports = {value for port in container.get("ports", []) for value in (port["name"], port["containerPort"])}
        faults += [f"{where}: no volume {it['name']}" for it in container.get("volumeMounts", []) if it["name"] not in volumes]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            target = container.get(probe, {}).get("grpc") or container.get(probe, {}).get("httpGet")
            if target and target["port"] not in ports:
                faults.append(f"{where}: {probe} at port {target['port']}, which is not there")
        if container.get("command") == ["tensord"]:
            command, given = container["args"][0], container["args"][1:]
            faults += [f"{where}: tensord {command} knows no {flag}" for flag in
                       (re.match("(--[a-z0-9-]+)", it).group(1) for it in given if it.startswith("--"))
                       if flag not in flags[command]]
    return faults
