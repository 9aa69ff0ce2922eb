"""`engine.ops`: operators by namespace, name and overload, as in torch.ops: engine.ops.aten.add.Tensor(a, b)."""

from __future__ import annotations

from tensord.engine import _engine


def find(full_name: str):
    """The callable for "aten::add", or for one overload, "aten::add.Tensor". Pickled operators refer to this
    function."""
    return _engine._operator(full_name)


def aten(name: str):
    """The callable of the operator "aten::" + name, which may have an overload: aten("add.Tensor")."""
    return _engine._operator("aten::" + name)


class _Packet:
    """All overloads of a name; single overloads are attributes ("default" is the one without a name)."""

    def __init__(self, full_name: str):
        self._full_name = full_name
        self._call = _engine._operator(full_name)

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def overloads(self) -> list:
        return [record["overload"] or "default" for record in _engine._schemas(self._full_name)]

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self.overloads():
            raise AttributeError(f"{self._full_name} has no overload '{name}'; it has {', '.join(self.overloads())}")
        return self._call if name == "default" and len(self.overloads()) == 1 else _engine._operator(
            self._full_name + ("." + name if name != "default" else "."))

    def __dir__(self):
        return self.overloads()

    def __repr__(self):
        return f"<operator {self._full_name}>"


class _Namespace:
    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str):
        if name.startswith("__") and name.endswith("__") and name in ("__wrapped__", "__path__", "__file__", "__iter__"):
            raise AttributeError(name)
        packet = _Packet(f"{self._name}::{name}")
        setattr(self, name, packet)
        return packet

    def __dir__(self):
        prefix = self._name + "::"
        return [name.removeprefix(prefix) for name in _engine._operator_names() if name.startswith(prefix)]


class _Operators:
    def __getattr__(self, name: str):
        if name.startswith("__") or not any(full.startswith(name + "::") for full in _engine._operator_names()):
            raise AttributeError(f"there are no operators of namespace '{name}'")
        namespace = _Namespace(name)
        setattr(self, name, namespace)
        return namespace

    def __dir__(self):
        return sorted({name.split("::")[0] for name in _engine._operator_names()})


ops = _Operators()
