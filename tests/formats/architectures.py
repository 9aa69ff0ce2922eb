"""Architectures of transformers, timm and torchvision with random weights: name -> function that makes (module, args,
kwargs, dynamic shapes). The configurations are small, since only the operators matter. transformers_rows.py adds to it."""

import torch
from torch.export import Dim

LIBRARY = {}


def ids(batch=2, length=7, vocabulary=90):
    return torch.randint(3, vocabulary, (batch, length), generator=torch.Generator().manual_seed(1))


def image(size=64, batch=2, channels=3):
    return torch.randn(batch, channels, size, size, generator=torch.Generator().manual_seed(1))


def add_transformers():
    import transformers

    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=99,
                 max_position_embeddings=64)

    def text(name, config, model, batch_dims=True, **options):
        def make():
            made = getattr(transformers, config)(**options)
            made.use_cache = False
            module = getattr(transformers, model)(made)
            tokens = ids()
            mask = torch.ones_like(tokens)
            mask[0, -2:] = 0
            dynamic = {"input_ids": {0: Dim("batch", max=16), 1: Dim("length", max=30)}}
            dynamic["attention_mask"] = dict(dynamic["input_ids"])
            return module, (), {"input_ids": tokens, "attention_mask": mask}, dynamic if batch_dims else None

        LIBRARY[name] = make

    text("bert", "BertConfig", "BertModel", **small)
    text("bert_classify", "BertConfig", "BertForSequenceClassification", **small)
    text("distilbert", "DistilBertConfig", "DistilBertModel", dim=32, n_layers=2, n_heads=4, hidden_dim=48, vocab_size=99, max_position_embeddings=64)
    text("roberta", "RobertaConfig", "RobertaModel", **small)
    text("xlm_roberta", "XLMRobertaConfig", "XLMRobertaModel", **small)
    text("electra", "ElectraConfig", "ElectraModel", embedding_size=32, **small)
    text("albert", "AlbertConfig", "AlbertModel", embedding_size=16, **small)
    text("deberta", "DebertaV2Config", "DebertaV2Model", relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"], batch_dims=False, **small)
    text("mpnet", "MPNetConfig", "MPNetModel", **small)
    text("camembert", "CamembertConfig", "CamembertModel", **small)
    text("modernbert", "ModernBertConfig", "ModernBertModel", pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, batch_dims=False, **small)
    text("funnel", "FunnelConfig", "FunnelModel", block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=48, vocab_size=99, batch_dims=False)
    text("squeezebert", "SqueezeBertConfig", "SqueezeBertModel", embedding_size=32, **small)
    text("gpt2", "GPT2Config", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64)
    text("gpt_neo", "GPTNeoConfig", "GPTNeoForCausalLM", hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], vocab_size=99, max_position_embeddings=64, window_size=4)
    text("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", **small)
    text("opt", "OPTConfig", "OPTForCausalLM", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, vocab_size=99, max_position_embeddings=64, word_embed_proj_dim=32)
    text("bloom", "BloomConfig", "BloomForCausalLM", hidden_size=32, n_layer=2, n_head=4, vocab_size=99)
    text("llama", "LlamaConfig", "LlamaForCausalLM", num_key_value_heads=2, **small)
    text("mistral", "MistralConfig", "MistralForCausalLM", num_key_value_heads=2, sliding_window=4, **small)
    text("qwen2", "Qwen2Config", "Qwen2ForCausalLM", num_key_value_heads=2, **small)
    text("qwen3", "Qwen3Config", "Qwen3ForCausalLM", num_key_value_heads=2, head_dim=8, **small)
    text("gemma", "GemmaConfig", "GemmaForCausalLM", num_key_value_heads=2, head_dim=8, **small)
    text("gemma2", "Gemma2Config", "Gemma2ForCausalLM", num_key_value_heads=2, head_dim=8, **small)
    text("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", num_key_value_heads=2, head_dim=8, **small)
    text("phi", "PhiConfig", "PhiForCausalLM", **small)
    text("phi3", "Phi3Config", "Phi3ForCausalLM", pad_token_id=0, num_key_value_heads=2, **small)
    text("falcon", "FalconConfig", "FalconForCausalLM", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=99)
    text("stablelm", "StableLmConfig", "StableLmForCausalLM", num_key_value_heads=2, **small)
    text("olmo2", "Olmo2Config", "Olmo2ForCausalLM", num_key_value_heads=2, **small)
    text("cohere", "CohereConfig", "CohereForCausalLM", num_key_value_heads=2, **small)
    text("granite", "GraniteConfig", "GraniteForCausalLM", num_key_value_heads=2, **small)
    text("smollm3", "SmolLM3Config", "SmolLM3ForCausalLM", num_key_value_heads=2, pad_token_id=0, **small)
    text("mixtral", "MixtralConfig", "MixtralForCausalLM", num_key_value_heads=2, num_local_experts=3, batch_dims=False, **small)
    text("mamba", "MambaConfig", "MambaForCausalLM", hidden_size=32, num_hidden_layers=2, state_size=4, vocab_size=99, batch_dims=False)
    text("rwkv", "RwkvConfig", "RwkvForCausalLM", hidden_size=32, num_hidden_layers=2, attention_hidden_size=32, vocab_size=99, context_length=16, batch_dims=False)
    text("t5_encoder", "T5Config", "T5EncoderModel", d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=99)

    def seq2seq(name, config, model, **options):
        def make():
            made = getattr(transformers, config)(**options)
            made.use_cache = False
            module = getattr(transformers, model)(made)
            return module, (), {"input_ids": ids(), "decoder_input_ids": ids(length=5)}, None

        LIBRARY[name] = make

    seq2seq("t5", "T5Config", "T5ForConditionalGeneration", d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=99)
    bart = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=99, max_position_embeddings=64)
    seq2seq("bart", "BartConfig", "BartForConditionalGeneration", **bart)
    seq2seq("marian", "MarianConfig", "MarianMTModel", pad_token_id=0, **bart)
    seq2seq("pegasus", "PegasusConfig", "PegasusForConditionalGeneration", **bart)

    def vision(name, config, model, size=32, **options):
        def make():
            module = getattr(transformers, model)(getattr(transformers, config)(**options))
            return module, (), {"pixel_values": image(size)}, {"pixel_values": {0: Dim("batch", max=16)}}

        LIBRARY[name] = make

    vit = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8)
    vision("vit", "ViTConfig", "ViTForImageClassification", **vit)
    vision("deit", "DeiTConfig", "DeiTModel", **vit)
    vision("beit", "BeitConfig", "BeitModel", **vit)
    vision("dinov2", "Dinov2Config", "Dinov2Model", **vit)
    vision("clip_vision", "CLIPVisionConfig", "CLIPVisionModel", **vit)
    vision("siglip_vision", "SiglipVisionConfig", "SiglipVisionModel", **vit)
    vision("hf_swin", "SwinConfig", "SwinModel", image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=2)
    vision("hf_convnext", "ConvNextConfig", "ConvNextModel", hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)
    vision("segformer", "SegformerConfig", "SegformerForSemanticSegmentation", size=64)
    vision("mobilevit", "MobileViTConfig", "MobileViTModel", size=64, image_size=64)
    vision("hf_resnet", "ResNetConfig", "ResNetForImageClassification", size=64, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])

    def clip():
        config = transformers.CLIPConfig(text_config=dict(small, eos_token_id=98), vision_config=vit, projection_dim=16)
        return transformers.CLIPModel(config), (), {"input_ids": ids(), "pixel_values": image(32)}, None

    LIBRARY["clip"] = clip

    def wav2vec2():
        config = transformers.Wav2Vec2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2)
        return transformers.Wav2Vec2Model(config), (torch.randn(2, 400),), {}, None

    LIBRARY["wav2vec2"] = wav2vec2

    def whisper():
        config = transformers.WhisperConfig(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=99, max_source_positions=20, max_target_positions=20, pad_token_id=0, decoder_start_token_id=1, bos_token_id=1, eos_token_id=2, suppress_tokens=None, begin_suppress_tokens=None, num_mel_bins=8, use_cache=False)
        return transformers.WhisperModel(config), (), {"input_features": torch.randn(2, 8, 40), "decoder_input_ids": ids(length=5)}, None

    LIBRARY["whisper"] = whisper


def add_vision():
    import torchvision

    def plain(name, make_module, size=64):
        LIBRARY["tv_" + name] = lambda: (make_module(), (image(size),), {}, ({0: Dim("batch", max=16)},))

    for name in ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5",
                 "efficientnet_b0", "regnet_y_400mf", "densenet121", "alexnet", "convnext_tiny", "swin_t", "swin_v2_t",
                 "vgg11_bn", "googlenet"):
        options = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
        plain(name, lambda name=name, options=options: getattr(torchvision.models, name)(weights=None, **options))
    plain("vit_b_16", lambda: torchvision.models.VisionTransformer(image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=48))
    plain("maxvit", lambda: torchvision.models.MaxVit(input_size=(64, 64), stem_channels=8, partition_size=2, block_channels=[8, 16], block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0.0))
    for name in ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"):
        plain(name, lambda name=name: getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None))
    LIBRARY["tv_r3d_18"] = lambda: (torchvision.models.video.r3d_18(weights=None), (torch.randn(2, 3, 4, 32, 32),), {}, ({0: Dim("batch", max=8)},))
    plain("inception_v3", lambda: torchvision.models.inception_v3(weights=None, init_weights=False, aux_logits=False), size=96)
    for name in ("fasterrcnn_mobilenet_v3_large_320_fpn", "retinanet_resnet50_fpn", "fcos_resnet50_fpn", "ssdlite320_mobilenet_v3_large"):
        LIBRARY["tv_" + name] = lambda name=name: (
            getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None),
            ([image(64, batch=1)[0]],), {}, None)
    for name in ("mvit_v1_b", "s3d"):
        LIBRARY["tv_" + name] = lambda name=name: (
            getattr(torchvision.models.video, name)(weights=None), (torch.randn(1, 3, 16, 224, 224),), {}, None)
    LIBRARY["tv_raft"] = lambda: (torchvision.models.optical_flow.raft_small(weights=None), (image(128), image(128)), {"num_flow_updates": 2}, None)


def add_timm():
    import timm

    def plain(name, size=64, **options):
        LIBRARY["timm_" + name] = lambda: (timm.create_model(name, pretrained=False, **options), (image(size),), {}, ({0: Dim("batch", max=16)},))

    for name in ("resnetv2_50", "ghostnet_100", "rexnet_100", "hardcorenas_a", "tinynet_e", "lcnet_050", "dla34", "cspresnet50",
                 "repvgg_a0", "convnextv2_atto", "efficientvit_b0", "fastvit_t8", "poolformer_s12", "hrnet_w18_small",
                 "selecsls42b", "eca_nfnet_l0", "semnasnet_075", "mobilenetv4_conv_small", "inception_next_tiny", "focalnet_tiny_srf"):
        plain(name)
    plain("mixer_b16_224", img_size=32, patch_size=16, num_blocks=2, embed_dim=32)
    plain("gmlp_s16_224", img_size=32, num_blocks=2, embed_dim=32)
    plain("deit_tiny_patch16_224", img_size=32, depth=2)
    plain("cait_xxs24_224", img_size=32, depth=2)
    plain("swinv2_tiny_window8_256", size=64, img_size=64, window_size=4, depths=(1, 1))
    plain("levit_128s", size=224)
    plain("xcit_nano_12_p16_224", size=64, img_size=64)
    plain("eva02_tiny_patch14_224", size=56, img_size=56, depth=2)
    plain("beitv2_base_patch16_224", size=32, img_size=32, depth=2, embed_dim=48, num_heads=4)
    plain("volo_d1_224", size=64, img_size=64)
    plain("edgenext_xx_small")
    plain("mvitv2_tiny", size=64, img_size=64)
    plain("coatnet_nano_rw_224", size=64, img_size=64)
    plain("mobileone_s0")
    plain("repghostnet_050")
    plain("pit_ti_224", size=224)
    plain("twins_svt_small", size=64, img_size=64)
    plain("crossvit_tiny_240", size=240)
    plain("tnt_s_patch16_224", size=32, img_size=32, depth=2)
    plain("nest_tiny", size=64, img_size=64)
    plain("davit_tiny", size=64)
    plain("hiera_tiny_224", size=224)
    plain("efficientformerv2_s0", size=224)
    plain("repvit_m0_9")
    plain("resmlp_12_224", size=32, img_size=32, num_blocks=2)
    plain("halonet26t", size=64)
    plain("lambda_resnet26t", size=256)
    plain("botnet26t_256", size=256)
    plain("skresnet18")
    plain("resnest14d")
    plain("res2net50_14w_8s")
    plain("vovnet39a")
    plain("xception41")
    plain("nextvit_small", size=64)
    plain("starnet_s1")


add_transformers()
add_vision()
add_timm()

from tests.formats import transformers_rows  # noqa: E402

transformers_rows.add(LIBRARY)
