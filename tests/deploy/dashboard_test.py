"""tensord.json is up to date with its generator, matches Grafana's types, and its panels do not overlap."""

import copy
import enum
import json
import types
import typing
import unittest

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from deploy.grafana import make_dashboard

plugins.register_default_plugins()


def misfits(value, wanted, path="dashboard"):
    """Where `value` does not match Grafana's types."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted in (typing.Any, object):
        return misfits_of_object(value, path) if hasattr(value, "to_json") else []
    if origin in (typing.Union, types.UnionType):
        found = [misfits(value, choice, path) for choice in arguments]
        # Of the choices the one that fits furthest is what was meant.
        return max(found, key=lambda messages: messages[0].index(": ")) if all(found) else []
    if origin is list:
        if not isinstance(value, list):
            return [f"{path}: not a list: {value!r}"]
        return [message for i, item in enumerate(value) for message in misfits(item, arguments[0], f"{path}[{i}]")]
    if origin is dict:
        if not isinstance(value, dict):
            return [f"{path}: not an object: {value!r}"]
        return [message for key, item in value.items() for message in misfits(item, arguments[1], f"{path}.{key}")]
    if origin is typing.Literal:
        return [] if value in arguments else [f"{path}: {value!r} is none of {arguments}"]
    if isinstance(wanted, type) and issubclass(wanted, enum.Enum):
        return [] if value in list(wanted) else [f"{path}: {value!r} is none of {[str(choice) for choice in wanted]}"]
    if wanted is float:
        wanted = (int, float)
    if isinstance(value, dict) and hasattr(wanted, "from_json"):  # the types keep some objects as parsed JSON
        value = wanted.from_json(value)
    if not isinstance(value, wanted) or isinstance(value, bool) and wanted is not bool:
        return [f"{path}: {value!r} is not {wanted}"]
    return misfits_of_object(value, path)


def misfits_of_object(value, path):
    hints = typing.get_type_hints(type(value)) if hasattr(value, "to_json") else {}
    return [message for name, hint in hints.items() for message in misfits(getattr(value, name), hint, f"{path}.{name}")]


def unknown_keys(before, after, path="dashboard"):
    """Keys of a JSON document that Grafana's types drop."""
    if isinstance(before, dict):
        return [message for key, value in before.items() for message in (
            unknown_keys(value, after[key], f"{path}.{key}") if key in after else [f"{path}.{key}: unknown"])]
    if isinstance(before, list):
        return [message for i, (a, b) in enumerate(zip(before, after, strict=True))
                for message in unknown_keys(a, b, f"{path}[{i}]")]
    return []


def faults(document):
    read = model.Dashboard.from_json(copy.deepcopy(document))
    return misfits(read, model.Dashboard) + unknown_keys(document, json.loads(json.dumps(read, cls=JSONEncoder)))


class DashboardTest(unittest.TestCase):
    def setUp(self):
        self.document = json.loads(make_dashboard.FILE.read_text())

    def test_is_what_the_generator_makes(self):
        self.assertEqual(make_dashboard.FILE.read_text(), make_dashboard.make(), "run deploy.grafana.make_dashboard")

    def test_fits_grafanas_types(self):
        self.assertEqual(faults(self.document), [])

    def test_faults_are_found(self):
        """Planted errors are found."""
        lines = next(i for i, panel in enumerate(self.document["panels"]) if panel["type"] == "timeseries")
        for path, value in ((("refresh",), 30), (("panels", lines, "titel"), "x"),
                            (("panels", lines, "options", "legend", "placement"), "left"),
                            (("panels", lines, "fieldConfig", "defaults", "custom", "drawStyle"), "lines"),
                            (("panels", lines, "fieldConfig", "defaults", "unit"), 5),
                            (("panels", lines, "targets", 0, "query"), "up"),
                            (("templating", "list", 1, "refresh"), 7)):
            broken = copy.deepcopy(self.document)
            place = broken
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
            self.assertTrue(faults(broken), path)

    def test_panels_lie_beside_each_other(self):
        panels = self.document["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        cells = set()
        for panel in panels:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            mine = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(mine & cells, panel["title"])
            cells |= mine

    def test_legends_and_queries(self):
        for panel in self.document["panels"]:
            letters = [target["refId"] for target in panel.get("targets", [])]
            self.assertEqual(len(set(letters)), len(letters))
            self.assertTrue(letters or panel["type"] == "row", panel["title"])


if __name__ == "__main__":
    unittest.main()
