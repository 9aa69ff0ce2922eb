"""Decoders of transformers with a growing cache: each as TorchScript, .pt2 and ONNX, stored in float32, bfloat16 and
float16, decodes greedily by `tensord run` as PyTorch does.

    build/pypi_torch/bin/python -m tests.formats.decoders /tmp/decoders build/dev/server/tensord [NAME…]
"""

import pathlib
import subprocess
import sys
import warnings

import torch
from torch.export import Dim

STEPS = 8
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
# Relative to the largest logit: each library sums 16-bit values in another order.
TOLERANCE = {"f32": 2e-5, "bf16": 3e-2, "f16": 4e-3}


def architectures():
    import transformers

    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=99,
                 max_position_embeddings=64)
    grouped = dict(small, num_key_value_heads=2)
    return {
        "gpt2": lambda: transformers.GPT2LMHeadModel(
            transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64)),
        "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**grouped)),
        "qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**grouped)),
        "qwen3": lambda: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(head_dim=8, **grouped)),
        "mistral": lambda: transformers.MistralForCausalLM(transformers.MistralConfig(sliding_window=6, **grouped)),
        "gemma3": lambda: transformers.Gemma3ForCausalLM(
            transformers.Gemma3TextConfig(head_dim=8, sliding_window=6, **grouped)),
        "phi": lambda: transformers.PhiForCausalLM(transformers.PhiConfig(**small)),
        "phi3": lambda: transformers.Phi3ForCausalLM(transformers.Phi3Config(pad_token_id=0, **grouped)),
    }


class Growing(torch.nn.Module):
    """forward(tokens, past) -> (logits of the last position, the past with the tokens): keys and values by layer."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, past: list[torch.Tensor]):
        from transformers.cache_utils import DynamicCache

        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        first = past[0].shape[2]
        position = first + torch.arange(tokens.shape[1])[None]
        mask = torch.ones(tokens.shape[0], first + tokens.shape[1], dtype=torch.int64)
        out = self.model(input_ids=tokens, past_key_values=cache, position_ids=position, attention_mask=mask, use_cache=True)
        kept = []
        for layer in out.past_key_values.layers:
            kept += [layer.keys, layer.values]
        return out.logits[:, -1], kept


class Flat(torch.nn.Module):
    """The same with one tensor for each argument and result, as a trace has them."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, tokens, *past):
        logits, kept = self.module(tokens, list(past))
        return (logits, *kept)


def shake(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape).to(parameter.dtype) * 0.05)


def export(kind, module, past, file):
    tokens = torch.randint(3, 90, (1, 3))
    seen = [tensor.new_zeros(1, tensor.shape[1], 4, tensor.shape[3]).normal_() for tensor in past]
    if kind == "pt":
        torch.jit.save(torch.jit.trace(Flat(module), (tokens, *seen), check_trace=False), file)
        return
    length, first = Dim("length", min=1, max=40), Dim("past", min=0, max=60)
    shapes = {"tokens": {1: length}, "past": [{2: first} for _ in seen]}
    program = torch.export.export(module, (tokens, seen), dynamic_shapes=shapes, strict=False)
    if kind == "pt2":
        torch.export.save(program, file)
    else:
        torch.onnx.export(program, (), file, dynamo=True, external_data=False, verbose=False)


def decode(module, past):
    """The arguments and the logits of each step of PyTorch."""
    generator = torch.Generator().manual_seed(2)
    tokens, steps = torch.randint(3, 90, (1, 5), generator=generator), []
    for _ in range(STEPS):
        with torch.no_grad():
            logits, kept = module(tokens, [tensor.clone() for tensor in past])
        steps.append(((tokens, *past), logits))
        tokens, past = logits.argmax(-1, keepdim=True), kept
    return steps


def check(file, kind, steps, folder, tensord, tolerance):
    """The error, or nothing. Every step gets PyTorch's cache, so that a last digit does not change the next token."""
    command = [tensord, "run", str(file)]
    for number, (arguments, _) in enumerate(steps):
        given = (arguments[0], list(arguments[1:])) if kind == "pt2" else arguments
        torch.save(given, folder / f"{number}.args")
        command += ["--call", f"forward,{folder / f'{number}.args'},{folder / f'{number}.result'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return (done.stderr or done.stdout).strip().split("\n")[-1]
    for number, (_, expected) in enumerate(steps):
        got = torch.load(folder / f"{number}.result")[0].float()
        worst = ((got - expected.float()).abs().max() / expected.float().abs().max()).item()
        if not worst <= tolerance:
            return f"WRONG: step {number} differs by {worst:.2g}"
    return ""


def main():
    warnings.simplefilter("ignore")
    folder, tensord, wanted = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, make in architectures().items():
        if wanted and name not in wanted:
            continue
        for stored, dtype in TYPES.items():
            torch.manual_seed(1)
            model = make().eval()
            shake(model)
            module = Growing(model.to(dtype))
            config = model.config
            heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
            width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
            past = [torch.zeros(1, heads, 0, width, dtype=dtype) for _ in range(2 * config.num_hidden_layers)]
            steps = decode(module, past)
            for kind in ("pt", "pt2", "onnx"):
                file = folder / f"{name}_{stored}.{kind}"
                try:
                    export(kind, module, past, str(file))
                except Exception as error:  # noqa: BLE001  the exporter's own limits
                    print(name, stored, kind, "is not exported:", str(error).split("\n")[0][:120], flush=True)
                    continue
                found = check(file, kind, steps, folder, tensord, TOLERANCE[stored])
                print(name, stored, kind, found or "equal", flush=True)
                failed += bool(found)
    print(f"{failed} are wrong or refused")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
