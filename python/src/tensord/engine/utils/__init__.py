"""torch.utils: what the engine has of it."""

from tensord.engine.utils import checkpoint

__all__ = ["checkpoint"]
