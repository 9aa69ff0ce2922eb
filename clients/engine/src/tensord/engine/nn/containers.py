"""Modules that hold modules."""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine.nn.module import Module, Parameter


class Sequential(Module):
    """One after the other. Takes modules, or one dict of them by name."""

    def __init__(self, *modules):
        super().__init__()
        named = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        items = list(self._modules.items())
        return Sequential(dict(items[index])) if isinstance(index, slice) else items[index][1]

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self


class ModuleList(Module):
    def __init__(self, modules=()):
        super().__init__()
        self.extend(modules)

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        for module in modules:
            self.append(module)
        return self

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        items = list(self._modules.values())
        return ModuleList(items[index]) if isinstance(index, slice) else items[index]

    def __setitem__(self, index: int, module):
        self._modules[str(range(len(self))[index])] = module


class ModuleDict(Module):
    def __init__(self, modules=None):
        super().__init__()
        for name, module in (modules or {}).items():
            self.add_module(name, module)

    def __getitem__(self, name):
        return self._modules[name]

    def __setitem__(self, name, module):
        self.add_module(name, module)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, name):
        return name in self._modules

    def keys(self):
        return self._modules.keys()

    def values(self):
        return self._modules.values()

    def items(self):
        return self._modules.items()


class ParameterList(Module):
    def __init__(self, parameters=()):
        super().__init__()
        for parameter in parameters:
            self.append(parameter)

    def append(self, parameter):
        self.register_parameter(str(len(self)), parameter)
        return self

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters.values())

    def __getitem__(self, index: int):
        return list(self._parameters.values())[index]


class ParameterDict(Module):
    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        self.update(parameters or {})

    def __setitem__(self, name: str, value):
        self._keys[name] = None
        setattr(self, name, Parameter(value) if isinstance(value, _engine.Tensor) and not isinstance(value, Parameter) else value)

    def __getitem__(self, name: str):
        if name not in self._keys:
            raise KeyError(name)
        return getattr(self, name)

    def __delitem__(self, name: str):
        del self._keys[name]
        delattr(self, name)

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __contains__(self, name):
        return name in self._keys

    def keys(self):
        return self._keys.keys()

    def values(self):
        return [self[name] for name in self._keys]

    def items(self):
        return [(name, self[name]) for name in self._keys]

    def update(self, parameters):
        for name, value in parameters.items() if hasattr(parameters, "items") else parameters:
            self[name] = value

    def get(self, name: str, default=None):
        return self[name] if name in self._keys else default

    def setdefault(self, name: str, default=None):
        if name not in self._keys:
            self[name] = default
        return self[name]

    def pop(self, name: str):
        value = self[name]
        del self[name]
        return value

    def clear(self):
        for name in list(self._keys):
            del self[name]

