"""Architectures of transformers, as rows: name, configuration, model, inputs, options of the configuration."""

import torch
from torch.export import Dim

SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=99,
             max_position_embeddings=64)
GROUPED = dict(SMALL, num_key_value_heads=2)
D_MODEL = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
               encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=99, max_position_embeddings=64)
IMAGE = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8)
SPEECH = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=(8, 8),
              conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2)
STAGES = dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])

TEXT = [
    ("convbert", "ConvBertConfig", "ConvBertModel", dict(SMALL, embedding_size=32)),
    ("mobilebert", "MobileBertConfig", "MobileBertModel", dict(SMALL, embedding_size=16, intra_bottleneck_size=16)),
    ("roformer", "RoFormerConfig", "RoFormerModel", dict(SMALL, embedding_size=32)),
    ("nystromformer", "NystromformerConfig", "NystromformerModel", dict(SMALL, num_landmarks=4)),
    ("fnet", "FNetConfig", "FNetModel", dict(SMALL, use_tpu_fourier_optimizations=False)),
    ("longformer", "LongformerConfig", "LongformerModel", dict(SMALL, attention_window=4)),
    ("bigbird", "BigBirdConfig", "BigBirdModel", dict(SMALL, attention_type="original_full")),
    ("ibert", "IBertConfig", "IBertModel", SMALL),
    ("esm", "EsmConfig", "EsmModel", dict(SMALL, pad_token_id=1, mask_token_id=2)),
    ("xlnet", "XLNetConfig", "XLNetModel", dict(d_model=32, n_layer=2, n_head=4, d_inner=48, vocab_size=99)),
    ("xlm", "XLMConfig", "XLMModel", dict(emb_dim=32, n_layers=2, n_heads=4, vocab_size=99, max_position_embeddings=64)),
    ("flaubert", "FlaubertConfig", "FlaubertModel", dict(emb_dim=32, n_layers=2, n_heads=4, vocab_size=99, max_position_embeddings=64)),
    ("splinter", "SplinterConfig", "SplinterModel", SMALL),
    ("luke", "LukeConfig", "LukeModel", dict(SMALL, entity_vocab_size=20, entity_emb_size=16)),
    ("rembert", "RemBertConfig", "RemBertModel", dict(SMALL, input_embedding_size=16)),
    ("deberta_v1", "DebertaConfig", "DebertaModel", dict(SMALL, relative_attention=True, pos_att_type=["c2p", "p2c"])),
    ("layoutlm", "LayoutLMConfig", "LayoutLMModel", SMALL),
    ("canine", "CanineConfig", "CanineModel", dict(SMALL, num_hash_buckets=16, local_transformer_stride=16)),
    ("gptj", "GPTJConfig", "GPTJForCausalLM", dict(n_embd=32, n_layer=2, n_head=4, rotary_dim=4, vocab_size=99, n_positions=64)),
    ("codegen", "CodeGenConfig", "CodeGenForCausalLM", dict(n_embd=32, n_layer=2, n_head=4, rotary_dim=4, vocab_size=99, n_positions=64)),
    ("gpt_bigcode", "GPTBigCodeConfig", "GPTBigCodeForCausalLM", dict(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64)),
    ("mpt", "MptConfig", "MptForCausalLM", dict(d_model=32, n_layers=2, n_heads=4, vocab_size=99, max_seq_len=64)),
    ("biogpt", "BioGptConfig", "BioGptForCausalLM", SMALL),
    ("xglm", "XGLMConfig", "XGLMForCausalLM", dict(d_model=32, num_layers=2, attention_heads=4, ffn_dim=48, vocab_size=99, max_position_embeddings=64)),
    ("starcoder2", "Starcoder2Config", "Starcoder2ForCausalLM", GROUPED),
    ("olmo", "OlmoConfig", "OlmoForCausalLM", GROUPED),
    ("glm", "GlmConfig", "GlmForCausalLM", dict(GROUPED, head_dim=8, pad_token_id=0)),
    ("nemotron", "NemotronConfig", "NemotronForCausalLM", GROUPED),
    ("qwen2_moe", "Qwen2MoeConfig", "Qwen2MoeForCausalLM", dict(GROUPED, num_experts=3, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16)),
    ("qwen3_moe", "Qwen3MoeConfig", "Qwen3MoeForCausalLM", dict(GROUPED, head_dim=8, num_experts=3, num_experts_per_tok=2, moe_intermediate_size=16)),
    ("olmoe", "OlmoeConfig", "OlmoeForCausalLM", dict(GROUPED, num_experts=3, num_experts_per_tok=2)),
    ("deepseek_v3", "DeepseekV3Config", "DeepseekV3ForCausalLM", dict(SMALL, num_key_value_heads=4, moe_intermediate_size=16, n_routed_experts=4, n_group=2, topk_group=1, num_experts_per_tok=2, first_k_dense_replace=1, kv_lora_rank=8, q_lora_rank=16, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8)),
    ("gpt_oss", "GptOssConfig", "GptOssForCausalLM", dict(GROUPED, head_dim=8, num_local_experts=3, num_experts_per_tok=2, sliding_window=4)),
    ("lfm2", "Lfm2Config", "Lfm2ForCausalLM", dict(GROUPED, layer_types=["conv", "full_attention"], conv_L_cache=3)),
    ("mamba2", "Mamba2Config", "Mamba2ForCausalLM", dict(hidden_size=32, num_hidden_layers=2, state_size=4, num_heads=8, head_dim=8, n_groups=2, vocab_size=99, chunk_size=4)),
    ("recurrent_gemma", "RecurrentGemmaConfig", "RecurrentGemmaForCausalLM", dict(SMALL, num_hidden_layers=3, lru_width=32, attention_window_size=8)),
    ("helium", "HeliumConfig", "HeliumForCausalLM", dict(GROUPED, head_dim=8)),
    ("exaone4", "Exaone4Config", "Exaone4ForCausalLM", GROUPED),
    ("umt5_encoder", "UMT5Config", "UMT5EncoderModel", dict(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=99)),
    ("longt5_encoder", "LongT5Config", "LongT5EncoderModel", dict(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=99, local_radius=3)),
    ("bert_qa", "BertConfig", "BertForQuestionAnswering", SMALL),
    ("bert_lm", "BertConfig", "BertForMaskedLM", SMALL),
    ("roberta_tokens", "RobertaConfig", "RobertaForTokenClassification", SMALL),
]

SEQ2SEQ = [
    ("mbart", "MBartConfig", "MBartForConditionalGeneration", D_MODEL),
    ("m2m100", "M2M100Config", "M2M100ForConditionalGeneration", D_MODEL),
    ("blenderbot", "BlenderbotConfig", "BlenderbotForConditionalGeneration", D_MODEL),
    ("led", "LEDConfig", "LEDForConditionalGeneration", dict({k: v for k, v in D_MODEL.items() if k != "max_position_embeddings"}, attention_window=4, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64)),
    ("prophetnet", "ProphetNetConfig", "ProphetNetForConditionalGeneration", dict(hidden_size=32, num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=4, num_decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=99, max_position_embeddings=64)),
    ("switch_transformers", "SwitchTransformersConfig", "SwitchTransformersForConditionalGeneration", dict(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=99, num_experts=3)),
    ("fsmt", "FSMTConfig", "FSMTForConditionalGeneration", dict({k: v for k, v in D_MODEL.items() if k != "vocab_size"}, langs=["en", "de"], src_vocab_size=99, tgt_vocab_size=99)),
]

# (…, image size)
VISION = [
    ("swinv2", "Swinv2Config", "Swinv2Model", dict(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4), 32),
    ("swin2sr", "Swin2SRConfig", "Swin2SRForImageSuperResolution", dict(image_size=32, embed_dim=16, depths=[1], num_heads=[2], window_size=4), 32),
    ("pvt", "PvtConfig", "PvtModel", dict(image_size=64), 64),
    ("pvt_v2", "PvtV2Config", "PvtV2Model", dict(image_size=64), 64),
    ("cvt", "CvtConfig", "CvtModel", dict(depth=[1, 1, 2]), 64),
    ("hf_poolformer", "PoolFormerConfig", "PoolFormerModel", dict(depths=[1, 1, 1, 1]), 64),
    ("hf_levit", "LevitConfig", "LevitModel", dict(image_size=64, depths=[1, 1, 1], hidden_sizes=[16, 32, 32], num_attention_heads=[2, 2, 2], key_dim=[8, 8, 8]), 64),
    ("mobilenet_v1", "MobileNetV1Config", "MobileNetV1Model", dict(), 64),
    ("hf_mobilenet_v2", "MobileNetV2Config", "MobileNetV2Model", dict(), 64),
    ("hf_regnet", "RegNetConfig", "RegNetModel", dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], groups_width=8), 64),
    ("bit", "BitConfig", "BitModel", dict(STAGES, num_groups=4, embedding_size=8), 64),
    ("focalnet", "FocalNetConfig", "FocalNetModel", dict(image_size=64, embed_dim=16, depths=[1, 1, 1, 1]), 64),
    ("hiera", "HieraConfig", "HieraModel", dict(), 224),
    ("convnextv2", "ConvNextV2Config", "ConvNextV2Model", STAGES, 64),
    ("vit_msn", "ViTMSNConfig", "ViTMSNModel", IMAGE, 32),
    ("data2vec_vision", "Data2VecVisionConfig", "Data2VecVisionModel", IMAGE, 32),
    ("dinov3", "DINOv3ViTConfig", "DINOv3ViTModel", dict(IMAGE, num_register_tokens=2), 32),
    ("ijepa", "IJepaConfig", "IJepaModel", IMAGE, 32),
    ("yolos", "YolosConfig", "YolosForObjectDetection", dict(IMAGE, image_size=[32, 32], num_detection_tokens=5), 32),
    ("detr", "DetrConfig", "DetrForObjectDetection", dict(D_MODEL, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=None, num_queries=5), 64),
    ("dpt", "DPTConfig", "DPTForDepthEstimation", dict(IMAGE, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 8, 8, 8], fusion_hidden_size=8, is_hybrid=False), 32),
    ("glpn", "GLPNConfig", "GLPNForDepthEstimation", dict(depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=8), 64),
    ("mobilevitv2", "MobileViTV2Config", "MobileViTV2Model", dict(image_size=64), 64),
    ("efficientnet_hf", "EfficientNetConfig", "EfficientNetModel", dict(width_coefficient=0.5, depth_coefficient=0.5, hidden_dim=640), 64),
    ("segformer_b1", "SegformerConfig", "SegformerModel", dict(depths=[1, 1, 1, 1]), 64),
    ("vit_hybrid", "ViTHybridConfig", "ViTHybridModel", dict(), 64),
    ("rt_detr_backbone", "RTDetrResNetConfig", "RTDetrResNetBackbone", dict(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]), 64),
    ("depth_anything", "DepthAnythingConfig", "DepthAnythingForDepthEstimation", dict(), 56),
    ("upernet", "UperNetConfig", "UperNetForSemanticSegmentation", dict(), 64),
]

AUDIO = [
    ("hubert", "HubertConfig", "HubertModel", SPEECH),
    ("wavlm", "WavLMConfig", "WavLMModel", SPEECH),
    ("unispeech", "UniSpeechConfig", "UniSpeechModel", SPEECH),
    ("sew", "SEWConfig", "SEWModel", dict(SPEECH, squeeze_factor=1)),
    ("data2vec_audio", "Data2VecAudioConfig", "Data2VecAudioModel", dict(SPEECH, num_conv_pos_embeddings=2, conv_pos_kernel_size=3)),
    ("wav2vec2_conformer", "Wav2Vec2ConformerConfig", "Wav2Vec2ConformerModel", SPEECH),
    ("wav2vec2_ctc", "Wav2Vec2Config", "Wav2Vec2ForCTC", dict(SPEECH, vocab_size=20)),
]


def tokens(length=8):
    return torch.randint(3, 90, (2, length), generator=torch.Generator().manual_seed(1))


def add(library):
    """`library`: name -> function that makes (module, args, kwargs, dynamic shapes)."""
    import transformers

    def make(config, model, options):
        made = getattr(transformers, config)(**options)
        if hasattr(made, "use_cache"):
            made.use_cache = False
        return getattr(transformers, model)(made)

    batch, length = Dim("batch", max=16), Dim("length", max=30)

    def text(config, model, options):
        ids = tokens(16 if config == "CanineConfig" else 8)
        mask = torch.ones_like(ids)
        mask[0, -2:] = 0
        shape = {0: batch, 1: length}
        return make(config, model, options), (), {"input_ids": ids, "attention_mask": mask}, {"input_ids": shape, "attention_mask": shape}

    def seq2seq(config, model, options):
        return make(config, model, options), (), {"input_ids": tokens(), "decoder_input_ids": tokens(5)}, None

    def vision(config, model, options, size):
        if config == "DetrConfig":
            options = dict(options, backbone_config=transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"]))
        if config in ("DepthAnythingConfig", "UperNetConfig"):
            return composed(config, model, size)
        return make(config, model, options), (), {"pixel_values": torch.randn(2, 3, size, size)}, {"pixel_values": {0: batch}}

    def composed(config, model, size):
        if config == "DepthAnythingConfig":
            backbone = transformers.Dinov2Config(hidden_size=32, num_hidden_layers=4, num_attention_heads=4, image_size=56, patch_size=14, out_indices=[1, 2, 3, 4], reshape_hidden_states=False, apply_layernorm=True)
            made = transformers.DepthAnythingConfig(backbone_config=backbone, reassemble_hidden_size=32, neck_hidden_sizes=[8, 8, 8, 8], fusion_hidden_size=8, head_hidden_size=8)
        else:
            backbone = transformers.ConvNextConfig(**STAGES, out_features=["stage1", "stage2", "stage3", "stage4"])
            made = transformers.UperNetConfig(backbone_config=backbone, hidden_size=16, use_auxiliary_head=False)
        return getattr(transformers, model)(made), (), {"pixel_values": torch.randn(2, 3, size, size)}, {"pixel_values": {0: batch}}

    def audio(config, model, options):
        return make(config, model, options), (), {"input_values": torch.randn(2, 400)}, None

    for kind, rows in ((text, TEXT), (seq2seq, SEQ2SEQ), (vision, VISION), (audio, AUDIO)):
        for name, *rest in rows:
            library[name] = lambda kind=kind, rest=rest: kind(*rest)
    add_composite(library, transformers)


def add_composite(library, transformers):
    """With several towers, or special inputs."""
    images = lambda size=32: torch.randn(2, 3, size, size)

    def row(name):
        def keep(function):
            library[name] = function
            return function

        return keep

    @row("siglip")
    def siglip():
        config = transformers.SiglipConfig(text_config=SMALL, vision_config=IMAGE)
        return transformers.SiglipModel(config), (), {"input_ids": tokens(), "pixel_values": images()}, None

    @row("chinese_clip")
    def chinese_clip():
        config = transformers.ChineseCLIPConfig(text_config=SMALL, vision_config=IMAGE, projection_dim=16)
        return transformers.ChineseCLIPModel(config), (), {"input_ids": tokens(), "pixel_values": images()}, None

    @row("clipseg")
    def clipseg():
        config = transformers.CLIPSegConfig(text_config=dict(SMALL, eos_token_id=98), vision_config=IMAGE, projection_dim=16, extract_layers=[0, 1], reduce_dim=16, decoder_num_attention_heads=2, decoder_intermediate_size=16)
        return transformers.CLIPSegForImageSegmentation(config), (), {"input_ids": tokens(), "pixel_values": images()}, None

    @row("owlvit")
    def owlvit():
        config = transformers.OwlViTConfig(text_config=dict(SMALL, max_position_embeddings=16), vision_config=IMAGE, projection_dim=16)
        return transformers.OwlViTModel(config), (), {"input_ids": tokens(), "pixel_values": images()}, None

    @row("vilt")
    def vilt():
        config = transformers.ViltConfig(**dict(SMALL, image_size=32, patch_size=8, max_image_length=-1))
        return transformers.ViltModel(config), (), {"input_ids": tokens(), "pixel_values": images()}, None

    @row("blip")
    def blip():
        config = transformers.BlipConfig(text_config=dict(SMALL, encoder_hidden_size=32), vision_config=IMAGE, projection_dim=16, image_text_hidden_size=16)
        return transformers.BlipModel(config), (), {"input_ids": tokens(), "pixel_values": images()}, None

    @row("trocr")
    def trocr():
        decoder = transformers.TrOCRConfig(d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, vocab_size=99, max_position_embeddings=64, use_cache=False, cross_attention_hidden_size=32)
        model = transformers.VisionEncoderDecoderModel(encoder=transformers.ViTModel(transformers.ViTConfig(**IMAGE)), decoder=transformers.TrOCRForCausalLM(decoder))
        return model, (), {"pixel_values": images(), "decoder_input_ids": tokens(5)}, None

    @row("layoutlmv3")
    def layoutlmv3():
        config = transformers.LayoutLMv3Config(**dict(SMALL, coordinate_size=4, shape_size=8, input_size=32, patch_size=8, max_2d_position_embeddings=64))
        boxes = torch.randint(0, 30, (2, 8, 4)).sort(-1)[0]
        return transformers.LayoutLMv3Model(config), (), {"input_ids": tokens(), "bbox": boxes, "pixel_values": images()}, None

    @row("lxmert")
    def lxmert():
        config = transformers.LxmertConfig(**dict(SMALL, l_layers=1, x_layers=1, r_layers=1, visual_feat_dim=16))
        return transformers.LxmertModel(config), (), {"input_ids": tokens(), "visual_feats": torch.randn(2, 5, 16), "visual_pos": torch.rand(2, 5, 4)}, None

    @row("perceiver")
    def perceiver():
        config = transformers.PerceiverConfig(num_latents=6, d_latents=32, d_model=24, num_blocks=1, num_self_attends_per_block=2, num_self_attention_heads=4, num_cross_attention_heads=4)
        return transformers.PerceiverModel(config), (torch.randn(2, 8, 24),), {}, None

    @row("speech_to_text")
    def speech_to_text():
        config = transformers.Speech2TextConfig(**dict({k: v for k, v in D_MODEL.items() if k != "max_position_embeddings"}, num_conv_layers=2, conv_kernel_sizes=(3, 3), conv_channels=16, input_feat_per_channel=8, max_source_positions=40, max_target_positions=20, use_cache=False))
        return transformers.Speech2TextModel(config), (), {"input_features": torch.randn(2, 24, 8), "decoder_input_ids": tokens(5)}, None

    @row("ast")
    def ast():
        config = transformers.ASTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, patch_size=8, max_length=32, num_mel_bins=16, frequency_stride=4, time_stride=4)
        return transformers.ASTModel(config), (torch.randn(2, 32, 16),), {}, None

    @row("encodec")
    def encodec():
        config = transformers.EncodecConfig(num_filters=4, hidden_size=16, codebook_size=16, upsampling_ratios=[4, 2], codebook_dim=16, target_bandwidths=[1.5], sampling_rate=8000)
        return transformers.EncodecModel(config), (torch.randn(2, 1, 64),), {}, None

    @row("vits_text_encoder")
    def vits():
        config = transformers.VitsConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, ffn_dim=48, flow_size=32, spectrogram_bins=16)
        encoder = transformers.VitsModel(config).text_encoder
        return encoder, (tokens(), torch.ones(2, 8, 1)), {}, None

    @row("patchtst")
    def patchtst():
        config = transformers.PatchTSTConfig(num_input_channels=2, context_length=32, patch_length=8, patch_stride=8, d_model=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, prediction_length=4)
        return transformers.PatchTSTForPrediction(config), (torch.randn(2, 32, 2),), {}, None

    @row("patchtsmixer")
    def patchtsmixer():
        config = transformers.PatchTSMixerConfig(num_input_channels=2, context_length=32, patch_length=8, patch_stride=8, d_model=16, num_layers=2, prediction_length=4)
        return transformers.PatchTSMixerForPrediction(config), (torch.randn(2, 32, 2),), {}, None

    @row("videomae")
    def videomae():
        config = transformers.VideoMAEConfig(**dict(IMAGE, num_frames=4, tubelet_size=2))
        return transformers.VideoMAEModel(config), (torch.randn(2, 4, 3, 32, 32),), {}, None

    @row("vivit")
    def vivit():
        config = transformers.VivitConfig(**dict({k: v for k, v in IMAGE.items() if k != "patch_size"}, num_frames=4, tubelet_size=[2, 8, 8]))
        return transformers.VivitModel(config), (torch.randn(2, 4, 3, 32, 32),), {}, None

    @row("timesformer")
    def timesformer():
        config = transformers.TimesformerConfig(**dict(IMAGE, num_frames=4))
        return transformers.TimesformerModel(config), (torch.randn(2, 4, 3, 32, 32),), {}, None

    @row("lstm")
    def lstm():
        return torch.nn.LSTM(8, 16, 2, bidirectional=True, batch_first=True), (torch.randn(2, 7, 8),), {}, None

    @row("gru")
    def gru():
        return torch.nn.GRU(8, 16, 2, batch_first=True), (torch.randn(2, 7, 8),), {}, None
