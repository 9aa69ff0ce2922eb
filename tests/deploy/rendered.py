"""Kubernetes objects as kubectl and helm render them from deploy/."""

import functools
import json
import os
import shutil
import subprocess
import sys

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KUBERNETES = os.path.join(ROOT, "deploy", "kubernetes")
CHART = os.path.join(ROOT, "deploy", "helm", "tensord")
HELM = os.path.join(os.path.dirname(sys.executable), "helm")


def documents(manifests):
    return [document for document in yaml.safe_load_all(manifests) if document]


def read(path):
    with open(path) as file:
        return documents(file.read())


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


@functools.lru_cache(maxsize=None)
def has_kustomize():
    """Whether kubectl supports components; versions before 1.21 do not."""
    if not shutil.which("kubectl"):
        return False
    version = subprocess.run(["kubectl", "version", "--client", "-o", "json"], capture_output=True, text=True)
    if version.returncode != 0:
        return False
    client = json.loads(version.stdout)["clientVersion"]
    return (int(client["major"]), int(client["minor"].split("+")[0])) >= (1, 21)


@functools.lru_cache(maxsize=None)
def kustomized(folder):
    return documents(run("kubectl", "kustomize", os.path.join(KUBERNETES, folder)))


@functools.lru_cache(maxsize=None)
def chart(*values, name="release"):
    flags = [flag for value in values for flag in (("--set", value) if "=" in value else ("--values", value))]
    return documents(run(HELM, "template", name, CHART, *flags))


def chart_values():
    """The values files that the chart is tested with."""
    folder = os.path.join(CHART, "ci")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))


def plain_files():
    """The files under deploy/kubernetes that are complete objects: path, objects."""
    patches, others = set(), []
    for folder, _, names in os.walk(KUBERNETES):
        for name in names:
            path = os.path.join(folder, name)
            if name == "kustomization.yaml":
                for patch in read(path)[0].get("patches", []):
                    patches.add(os.path.join(folder, patch.get("path", "")))
            elif name.endswith(".yaml"):
                others.append(path)
    wholes = {path: read(path) for path in sorted(set(others) - patches)}
    return {path: objects for path, objects in wholes.items() if all("kind" in it for it in objects)}
