"""Container modules."""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine.nn.module import Module, Parameter


class _Row(Module):
    """Modules by index."""

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def _key(self, index: int) -> str:
        return list(self._modules)[index]

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(self._from_items(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __setitem__(self, index: int, module):
        self.add_module(self._key(index), module)

    def __delitem__(self, index):
        gone = {id(module) for module in self[index]} if isinstance(index, slice) else {id(self[index])}
        self._renumber([module for module in self if id(module) not in gone])

    def _renumber(self, modules):
        self._modules.clear()
        self.extend(modules)

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module):
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, index: int = -1):
        module = self[index]
        del self[index]
        return module


class Sequential(_Row):
    """Runs modules in order. Takes modules, or one dict of them by name."""

    def __init__(self, *modules):
        super().__init__()
        named = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        for name, module in named:
            self.add_module(str(name), module)

    @staticmethod
    def _from_items(items):
        return dict(items)

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Row):
    def __init__(self, modules=()):
        super().__init__()
        self.extend(modules)

    @staticmethod
    def _from_items(items):
        return [module for _, module in items]

    def __add__(self, others):
        return ModuleList([*self, *others])


class ModuleDict(Module):
    def __init__(self, modules=None):
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, name):
        return self._modules[name]

    def __setitem__(self, name, module):
        self.add_module(name, module)

    def __delitem__(self, name):
        del self._modules[name]

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

    def update(self, modules):
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self[name] = module

    def pop(self, name):
        return self._modules.pop(name)

    def clear(self):
        self._modules.clear()


class ParameterList(Module):
    def __init__(self, parameters=()):
        super().__init__()
        self.extend(parameters)

    def append(self, parameter):
        self[len(self)] = parameter
        return self

    def extend(self, parameters):
        for parameter in list(parameters):
            self.append(parameter)
        return self

    def __setitem__(self, index: int, parameter):
        key = str(index if index == len(self) else range(len(self))[index])
        self.register_parameter(key, parameter if isinstance(parameter, Parameter) else Parameter(parameter))

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters.values())

    def __getitem__(self, index):
        found = list(self._parameters.values())[index]
        return ParameterList(found) if isinstance(index, slice) else found


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

