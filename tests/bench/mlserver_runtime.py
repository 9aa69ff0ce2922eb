"""The MLServer runtime for peer_servers.py."""

import torch
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class Identity(MLModel):
    async def load(self):
        return True

    async def predict(self, request):
        return self.answer(NumpyCodec.decode_input(request.inputs[0]))

    def answer(self, values):
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("OUTPUT__0", values)])


class TorchScript(Identity):
    async def load(self):
        self.model = torch.jit.load(self.settings.parameters.uri).eval()
        return True

    async def predict(self, request):
        values = NumpyCodec.decode_input(request.inputs[0])
        with torch.inference_mode():
            return self.answer(self.model(torch.from_numpy(values)).numpy())
