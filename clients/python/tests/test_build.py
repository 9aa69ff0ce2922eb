"""Installing: hatch_build.py must run in Pythons that the client does not support, so that pip refuses them by name instead of with a traceback;
what another distribution has is named."""

import ast
import importlib.util
import pathlib

import pytest

import tensord

SOURCE = (pathlib.Path(__file__).resolve().parent.parent / "hatch_build.py").read_text()


def test_annotations_are_not_evaluated():
    after_the_docstring = ast.parse(SOURCE, feature_version=(3, 8)).body[1]
    assert isinstance(after_the_docstring, ast.ImportFrom) and after_the_docstring.module == "__future__"
    assert [name.name for name in after_the_docstring.names] == ["annotations"]


def test_without_the_engine_the_package_is_named():
    if importlib.util.find_spec("tensord.engine") is not None:
        pytest.skip("the engine is here")
    with pytest.raises(ModuleNotFoundError, match="tensord-engine, which is not installed"):
        from tensord import engine  # noqa: F401
    with pytest.raises(AttributeError, match="no attribute 'Clients'"):
        tensord.Clients
