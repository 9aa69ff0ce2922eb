"""Optimizers and learning-rate schedules, under PyTorch's names."""

from tensord.engine.optim import lr_scheduler
from tensord.engine.optim._base import Optimizer
from tensord.engine.optim._native import LBFGS, SGD, Adagrad, Adam, AdamW, RMSprop, SparseAdam
from tensord.engine.optim._written import ASGD, Adadelta, Adamax, NAdam, RAdam, Rprop

__all__ = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam",
           "lr_scheduler"]
