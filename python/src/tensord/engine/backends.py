"""How CUDA's libraries compute, under torch.backends' names: `backends.cuda.matmul.allow_tf32` and `backends.cudnn.allow_tf32`, both False at
first. They are of the calling thread, and of threads that the engine starts for it."""

from types import SimpleNamespace

from tensord.engine import _engine

__all__ = ["cuda", "cudnn"]


class _Tf32:
    def __init__(self, of_products: bool) -> None:
        object.__setattr__(self, "_of_products", of_products)

    @property
    def allow_tf32(self) -> bool:
        return _engine._allows_tf32(self._of_products)

    def __setattr__(self, name: str, value: bool) -> None:
        if name != "allow_tf32":
            raise AttributeError(f"there is no setting {name!r}; there is allow_tf32")
        _engine._allow_tf32(self._of_products, value)


cuda = SimpleNamespace(matmul=_Tf32(True))
cudnn = _Tf32(False)
