"""torchaudio's transforms, functionals and models, small and scripted. Not among the default sections: Debian has no
torchaudio."""

import torch
import torchaudio.functional as AF
import torchaudio.models as M
import torchaudio.transforms as AT
from torch import nn

from tests.language.case import Section
from tests.language.sections.decoding import values
from tests.language.sections.module_programs import filled

section = Section()
made = section.made
WAVE = torch.stack([torch.sin(torch.arange(4000) * (0.05 + 0.00003 * torch.arange(4000) * k)) for k in (1, 2)]) * 0.4
SHORT = WAVE[:, 100:3700]


def script(name: str, make, *calls, rtol: float = 1e-3, since=(1, 13)):
    made(name, lambda: torch.jit.script(make().eval()), *calls, rtol=rtol, since=since)


SPECTRUM = torch.complex(values(2, 33, 12), values(2, 33, 12, seed=1))
POWER = values(2, 33, 12, low=0.01, high=2.0)
TRANSFORMS = {
    "spectrogram": lambda: AT.Spectrogram(n_fft=64, hop_length=20, power=2.0, normalized=True),
    "complex_spectrogram": lambda: AT.Spectrogram(n_fft=64, power=None, window_fn=torch.hamming_window, pad=3),
    "mel_spectrogram": lambda: AT.MelSpectrogram(8000, n_fft=128, n_mels=16, mel_scale="slaney", norm="slaney"),
    "mfcc": lambda: AT.MFCC(8000, n_mfcc=8, log_mels=True, melkwargs={"n_fft": 128, "n_mels": 16}),
    "lfcc": lambda: AT.LFCC(8000, n_filter=12, n_lfcc=6, speckwargs={"n_fft": 128}),
    "mu_law_encoding": lambda: AT.MuLawEncoding(64),
    "resample": lambda: AT.Resample(8000, 6000),
    "resample_kaiser": lambda: AT.Resample(8000, 12000, resampling_method="kaiser_window"),
    "fade": lambda: AT.Fade(100, 200, "half_sine"),
    "volume": lambda: AT.Vol(3.0, "db"),
    "spectral_centroid": lambda: AT.SpectralCentroid(8000, n_fft=64),
    "loudness": lambda: AT.Loudness(8000),
    "preemphasis": lambda: AT.Preemphasis(),
    "deemphasis": lambda: AT.Deemphasis(),
}
for name, make in TRANSFORMS.items():
    script(name, make, (WAVE,), (SHORT[:1],))
for name, make in {"amplitude_to_db": lambda: AT.AmplitudeToDB(top_db=40.0), "mel_scale": lambda: AT.MelScale(10, 8000, n_stft=33), "deltas": lambda: AT.ComputeDeltas(5),
                   "cmn": lambda: AT.SlidingWindowCmn(6, 3, True, True), "frequency_masking": lambda: AT.FrequencyMasking(1), "inverse_mel": lambda: AT.InverseMelScale(33, 33, 8000, max_iter=3)}.items():
    if name != "inverse_mel":
        script(name, make, (POWER,), (POWER[:1],))
script("griffin_lim", lambda: AT.GriffinLim(n_fft=64, n_iter=4, rand_init=False), (POWER,), rtol=2e-2)
script("inverse_spectrogram", lambda: AT.InverseSpectrogram(n_fft=64), (SPECTRUM, None), (SPECTRUM, 300))
script("time_stretch", lambda: AT.TimeStretch(n_freq=33, fixed_rate=1.3), (SPECTRUM, None), (SPECTRUM, 0.7))
script("mu_law_decoding", lambda: AT.MuLawDecoding(64), (torch.arange(64),))
script("psd", lambda: AT.PSD(), (SPECTRUM.unsqueeze(0), POWER[:1].clamp(max=1.0)))
MASKS = POWER[0].clamp(max=1.0)
script("souden_mvdr", lambda: AT.SoudenMVDR(), (SPECTRUM, torch.einsum("cft,dft->fcd", SPECTRUM, SPECTRUM.conj()), torch.eye(2, dtype=torch.complex64).expand(33, 2, 2), 0))
script("convolve", lambda: AT.Convolve("same"), (WAVE, SHORT[:, :50]))
script("fft_convolve", lambda: AT.FFTConvolve("full"), (WAVE, SHORT[:, :50]))
script("add_noise", lambda: AT.AddNoise(), (WAVE, WAVE.flip(1), torch.tensor([5.0, 10.0]), None))


class Filters(nn.Module):
    def forward(self, x):
        y = AF.lowpass_biquad(x, 8000, 1000.0)
        return [y, AF.highpass_biquad(x, 8000, 500.0), AF.equalizer_biquad(x, 8000, 800.0, 3.0), AF.treble_biquad(x, 8000, 2.0), AF.filtfilt(x[:, :200], torch.tensor([1.0, -0.3]), torch.tensor([0.2, 0.2])),
                AF.overdrive(x[:, :200]), AF.dcshift(x, 0.1, 0.05), AF.contrast(x), AF.detect_pitch_frequency(x, 8000), AF.gain(x, 2.0), AF.flanger(x[None, :, :300], 8000), AF.phaser(x[:, :200], 8000)]


script("filters", Filters, (WAVE,))

LENGTHS = torch.tensor([12, 9])
FRAMES = values(2, 12, 8)
script("conformer", lambda: filled(M.Conformer(8, 2, 12, 2, 3)), (FRAMES, LENGTHS))
script("wav2letter", lambda: filled(M.Wav2Letter(5, "waveform", 1), 0.05), (WAVE[:, None, :],))
script("conv_tasnet", lambda: filled(M.ConvTasNet(2, 16, 8, msk_kernel_size=3, msk_num_feats=6, msk_num_hidden_feats=8, msk_num_layers=2, msk_num_stacks=2)), (WAVE[:, None, :400],))
script("wavernn", lambda: filled(M.WaveRNN([2, 2, 3], 8, 12, n_res_block=1, n_rnn=8, n_fc=8, n_freq=10, n_hidden=6, n_output=7)), (values(1, 1, 12), values(1, 1, 10, 5)))
script("emformer", lambda: filled(M.Emformer(8, 2, 12, 2, 4, right_context_length=1, left_context_length=4)), (values(2, 13, 8), torch.tensor([12, 9])), ("infer", (values(2, 5, 8), torch.tensor([5, 5]), None)))
script("rnnt", lambda: filled(M.emformer_rnnt_model(input_dim=8, encoding_dim=12, num_symbols=7, segment_length=8, right_context_length=4, time_reduction_input_dim=4, time_reduction_stride=2, transformer_num_heads=2, transformer_ffn_dim=12,
                                                    transformer_num_layers=1, transformer_dropout=0.1, transformer_activation="gelu", transformer_left_context_length=4, transformer_max_memory_size=0, transformer_weight_init_scale_strategy="depthwise",
                                                    transformer_tanh_on_mem=True, symbol_embedding_dim=6, num_lstm_layers=1, lstm_layer_norm=True, lstm_layer_norm_epsilon=1e-3, lstm_dropout=0.1)),
       ("transcribe", (values(2, 20, 8), torch.tensor([20, 16]))), ("predict", (torch.tensor([[1, 2]]), torch.tensor([2]), None)))
SINCE = (2, 0)  # missing in 1.13
SIZES = dict(extractor_mode="group_norm", extractor_conv_layer_config=[(8, 10, 5), (8, 3, 2)], extractor_conv_bias=False, encoder_embed_dim=12, encoder_projection_dropout=0.1, encoder_pos_conv_kernel=8, encoder_pos_conv_groups=2,
             encoder_num_layers=2, encoder_num_heads=2, encoder_attention_dropout=0.1, encoder_ff_interm_features=16, encoder_ff_interm_dropout=0.1, encoder_dropout=0.1, encoder_layer_norm_first=False, encoder_layer_drop=0.0, aux_num_out=5)
script("wav2vec2", lambda: filled(M.wav2vec2_model(**SIZES)), (SHORT, torch.tensor([3600, 2600])), (SHORT, None), ("extract_features", (SHORT, None, 1)), since=SINCE)
WAVLM = {**SIZES, "encoder_num_buckets": 8, "encoder_max_distance": 16, "encoder_layer_norm_first": False}
script("wavlm", lambda: filled(M.wavlm_model(**WAVLM)), (SHORT, None), since=SINCE)
