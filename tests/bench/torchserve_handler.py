"""The TorchServe handler for peer_servers.py: raw float32 in and out; the bench packs it into the archives."""

import os

import numpy as np
import torch

SHAPES = {"mlp": (1, -1), "resnet50": (1, 3, 224, 224)}


class Handler:
    def initialize(self, context):
        model = context.manifest["model"]
        self.name = model["modelName"]
        folder = context.system_properties["model_dir"]
        self.model = torch.jit.load(os.path.join(folder, model["serializedFile"])).eval()

    def handle(self, requests, _context):
        """Builds a batch with one row from each request."""
        inputs = [next(iter(request.values())) for request in requests]
        if self.name == "identity":
            return inputs
        rows = [np.frombuffer(each, np.float32).reshape(SHAPES[self.name]) for each in inputs]
        with torch.inference_mode():
            outputs = self.model(torch.from_numpy(np.concatenate(rows))).numpy()
        return [output.tobytes() for output in outputs]
