"""Networks of torchvision, timm and transformers with random weights, small where their configuration allows it."""

import timm
import torch
import torchvision
import transformers

TORCHVISION = ["resnet18", "mobilenet_v3_small", "efficientnet_b0", "densenet121", "squeezenet1_1", "shufflenet_v2_x0_5",
               "regnet_y_400mf", "mnasnet0_5"]
TIMM = {"vit_tiny_patch16_224": 224, "swin_tiny_patch4_window7_224": 224, "convnext_atto": 96, "mixer_s32_224": 224,
        "levit_128s": 224, "edgenext_xx_small": 96, "mobilevit_xxs": 128, "ghostnet_050": 96}
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 100,
         "max_position_embeddings": 64}
GPT_SIZES = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 100, "n_positions": 64}
DISTIL_SIZES = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 100, "max_position_embeddings": 64}
OPT_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64, "vocab_size": 100,
             "max_position_embeddings": 64, "word_embed_proj_dim": 32}
TEXT = {
    "Bert": ("Model", SIZES), "Roberta": ("Model", SIZES), "MPNet": ("Model", SIZES), "DebertaV2": ("Model", SIZES),
    "Albert": ("Model", {**SIZES, "embedding_size": 16}), "Electra": ("Model", {**SIZES, "embedding_size": 16}),
    "DistilBert": ("Model", DISTIL_SIZES), "GPT2": ("LMHeadModel", GPT_SIZES), "OPT": ("ForCausalLM", OPT_SIZES),
    "Llama": ("ForCausalLM", {**SIZES, "num_key_value_heads": 2}), "GPTNeoX": ("ForCausalLM", SIZES),
    "Qwen2": ("ForCausalLM", {**SIZES, "num_key_value_heads": 2}),
}


class FirstOutput(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        result = self.model(x)
        return result if torch.is_tensor(result) else result[0]


def text_model(family):
    kind, sizes = TEXT[family]
    config = getattr(transformers, family + "Config")(**sizes)
    config.use_cache = False
    return getattr(transformers, family + kind)(config)


def all_models():
    """Yields (name, function that makes a model and its input)."""
    for name in TORCHVISION:
        yield name, lambda name=name: (getattr(torchvision.models, name)(weights=None), torch.randn(2, 3, 96, 96))
    for name, size in TIMM.items():
        yield name, lambda name=name, size=size: (timm.create_model(name, pretrained=False), torch.randn(2, 3, size, size))
    for family in TEXT:
        yield family, lambda family=family: (text_model(family), torch.randint(0, 90, (2, 12)))
    yield "lstm", lambda: (torch.nn.LSTM(8, 16, 2, bidirectional=True, batch_first=True), torch.randn(2, 7, 8))
    yield "gru", lambda: (torch.nn.GRU(8, 16, 2, batch_first=True), torch.randn(2, 7, 8))
