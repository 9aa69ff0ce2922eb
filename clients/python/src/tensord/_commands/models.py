"""models, load, unload"""

from __future__ import annotations

import argparse
import json
from typing import Any

from tensord._commands.connect import add_command, connect, pairs, print_json, print_table
from tensord.errors import InvalidArgumentError


def add_to(commands: Any) -> None:
    command = add_command(commands, "models", list_models, "Models of a running server and their states")
    command.add_argument("--ready", action="store_true", help="only those that are ready")
    command.add_argument("--statistics", action="store_true", help="requests and mean times of loaded models")

    of_models = command.add_subparsers(metavar="label")
    command = add_command(of_models, "label", label, "Move version labels of a model")
    command.add_argument("model")
    command.add_argument("labels", help="LABEL=VERSION, separated by commas; canary= removes one")

    command = add_command(commands, "load", load, "Load a model of a running server, or what has changed of it")
    command.add_argument("model")
    command.add_argument("--config", help="JSON file with a configuration instead of config.pbtxt")
    command.add_argument("--file", action="append", default=[], metavar="PATH_IN_MODEL=FILE",
                         help="instead of the model's folder; may be repeated")
    command.add_argument("--weights", help="only new weights: a state dict of torch.save, or .safetensors")
    command.add_argument("--version", dest="model_version", type=int, default=1,
                         help="the version that gets the weights (%(default)s)")
    command.add_argument("--label", default="", help="then move version labels, such as stable=2,canary=3")

    command = add_command(commands, "unload", unload, "Unload a model; tensord returns with the memory back")
    command.add_argument("model")
    command.add_argument("--dependents", action="store_true", help="also unload the models that were loaded for an ensemble")


def list_models(given: argparse.Namespace) -> int:
    with connect(given) as client:
        models = client.models(given.ready)
        statistics = client.statistics() if given.statistics else []
    if given.json:
        for item in statistics if given.statistics else models:
            print_json(item)
    elif given.statistics:
        print_table(["MODEL", "VERSION", "REQUESTS", "FAILED", "MEAN MS", "QUEUE MS", "COMPUTE MS"],
                    [[item.name, item.version, f"{item.durations['success'].count}", f"{item.durations['fail'].count}",
                      *(f"{item.row()[key]:.3g}" for key in ("success_ms", "queue_ms", "compute_infer_ms"))]
                     for item in statistics])
    else:
        print_table(["MODEL", "VERSION", "STATE", "REASON"],
                    [[model.name, model.version, model.state or "not loaded", model.reason] for model in models])
    return 0


def label(given: argparse.Namespace) -> int:
    with connect(given) as client:
        client.label(given.model, pairs(given.labels.split(","), "labels", "LABEL=VERSION"))
    return done(given, given.labels)


def load(given: argparse.Namespace) -> int:
    if given.weights and (given.config or given.file):
        raise InvalidArgumentError("--weights: comes alone, without --config and --file")
    config = None
    if given.config:
        with open(given.config) as file:
            try:
                config = json.load(file)
            except ValueError as error:
                raise InvalidArgumentError(f"--config: {given.config} is not JSON: {error}") from error
    timeout = loading_timeout(given)
    with connect(given) as client:
        if given.weights:
            client.load_weights(given.model, given.weights, version=given.model_version, timeout=timeout)
        else:
            files = pairs(given.file, "--file", "PATH_IN_MODEL=FILE")
            client.load(given.model, config=config, files=files, timeout=timeout)
        if given.label:
            client.label(given.model, pairs(given.label.split(","), "--label", "LABEL=VERSION"))
    return done(given, "loaded")


def unload(given: argparse.Namespace) -> int:
    with connect(given) as client:
        client.unload(given.model, dependents=given.dependents, timeout=loading_timeout(given))
    return done(given, "unloaded")


def loading_timeout(given: argparse.Namespace) -> float:
    return 600.0 if given.timeout is None else float(given.timeout)


def done(given: argparse.Namespace, what: str) -> int:
    if not given.json:
        print(f"{given.model}: {what}")
    return 0
