"""Saves the results of PyTorch's optimizers, schedules, samplers and layers, for the tests in this folder.

Usage: python3 -m tests.nn.make_nn_cases OUTPUT_FOLDER
"""

import pathlib
import sys

import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, RandomSampler, SubsetRandomSampler, TensorDataset, WeightedRandomSampler

STEPS = 100
SIZES = ([5, 3], [37], [], [2, 3, 4, 4])


def optimizer_cases():
    """Kind, options, options of the second group."""
    return [
        ("SGD", {"lr": 0.1}, {}),
        ("SGD", {"lr": 0.05, "momentum": 0.9}, {"lr": 0.01}),
        ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.02}, {}),
        ("SGD", {"lr": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1}, {"momentum": 0.5}),
        ("SGD", {"lr": 0.001, "momentum": 0.9, "maximize": True}, {}),
        ("Adam", {"lr": 0.01}, {"betas": (0.8, 0.9)}),
        ("Adam", {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}, {"lr": 0.1}),
        ("Adam", {"lr": 0.001, "eps": 1e-3, "maximize": True}, {}),
        ("AdamW", {"lr": 0.01}, {"weight_decay": 0.2}),
        ("AdamW", {"lr": 0.02, "amsgrad": True, "betas": (0.7, 0.99)}, {}),
        ("RMSprop", {"lr": 0.01}, {}),
        ("RMSprop", {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.01}, {"alpha": 0.5}),
        ("RMSprop", {"lr": 0.01, "momentum": 0.5, "centered": True}, {}),
        ("RMSprop", {"lr": 0.001, "centered": True, "maximize": True}, {}),
        ("Adagrad", {"lr": 0.1}, {"lr": 0.01}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}, {}),
    ]


def run_optimizer(kind, options, second, dtype):
    """Gradients are 0.3 · parameter + noise; every fifth step one parameter has none."""
    generator = torch.Generator().manual_seed(5)
    start = [torch.randn(size, generator=generator, dtype=dtype) for size in SIZES]
    start[3] = start[3].to(memory_format=torch.channels_last)
    noise = [torch.randn([STEPS, *size], generator=generator, dtype=dtype) for size in SIZES]
    params = [p.clone().requires_grad_() for p in start]
    groups = [{"params": params[:2]}, {"params": params[2:], **second}]
    optimizer = getattr(torch.optim, kind)(groups, **options)
    at, state = {}, None
    for step in range(STEPS):
        for i, p in enumerate(params):
            skipped = step % 5 == 4 and i == step // 5 % len(params)
            p.grad = None if skipped else 0.3 * p.detach() + noise[i][step]
        optimizer.step()
        if step + 1 in (1, 2, 10, 50, STEPS):
            at[step + 1] = [p.detach().clone() for p in params]
        if step + 1 == 50:
            state = optimizer.state_dict()
            state = torch.load(saved(state))
    return {"kind": kind, "options": options, "second": second, "start": start, "noise": noise, "at": at, "state": state}


def sparse_optimizer_cases():
    return [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "maximize": True}),
        ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.2}),
        ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.2, "maximize": True}),
        ("SGD", {"lr": 0.05, "momentum": 0.8, "nesterov": True}),
        ("Adagrad", {"lr": 0.1}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
        ("SparseAdam", {"lr": 0.02}),
        ("SparseAdam", {"lr": 0.02, "betas": (0.8, 0.9), "eps": 1e-4, "maximize": True}),
    ]


def run_sparse_optimizer(kind, options, dtype):
    """Two tables; indices repeat, in the second some are never used, and sometimes there are none."""
    generator = torch.Generator().manual_seed(7)
    start = [torch.randn(size, generator=generator, dtype=dtype) for size in ([9, 4], [6, 3])]
    tables = [p.clone().requires_grad_() for p in start]
    optimizer = getattr(torch.optim, kind)(tables, **options)
    indices, weights, at, grads, state = [], [], [], [], None
    for step in range(20):
        few = 0 if step % 6 == 5 and kind == "SGD" else 3  # PyTorch's other optimizers fail without any
        index = [torch.randint(0, 9, (5,), generator=generator),
                 torch.randint(0, 4, (few,), generator=generator)]
        weight = [torch.randn([i.numel(), t.shape[1]], generator=generator, dtype=dtype) for i, t in zip(index, tables)]
        optimizer.zero_grad(set_to_none=True)
        for table, i, w in zip(tables, index, weight):
            (torch.nn.functional.embedding(i, table, sparse=True) * w).sum().backward()
        optimizer.step()
        indices.append(index)
        weights.append(weight)
        grads.append([t.grad.to_dense() for t in tables])
        at.append([t.detach().clone() for t in tables])
        if step == 9:
            state = torch.load(saved(optimizer.state_dict()))
    return {"kind": kind, "options": options, "start": start, "indices": indices, "weights": weights, "at": at,
            "grads": grads, "state": state}


def saved(value):
    import io

    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def run_lbfgs(options, dtype, steps):
    params = [torch.tensor([-1.2, 1.0, 0.5], dtype=dtype, requires_grad=True),
              torch.tensor([0.3, -0.7], dtype=dtype, requires_grad=True)]
    optimizer = torch.optim.LBFGS(params, **options)
    losses, at, state = [], [], None

    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(torch.cat(params))
        loss.backward()
        return loss

    for step in range(steps):
        losses.append(float(optimizer.step(closure)))
        at.append(torch.cat(params).detach().clone())
        if step == 3:
            state = torch.load(saved(optimizer.state_dict()))
    return {"options": {k: v for k, v in options.items() if v is not None}, "losses": losses, "at": at, "state": state,
            "evaluations": optimizer.state[params[0]]["func_evals"]}


def schedules():
    """Name, arguments and the schedule; two groups with lr 0.4 and 0.1."""
    return [
        ("StepLR", dict(step_size=7, gamma=0.5), lr_scheduler.StepLR),
        ("MultiStepLR", dict(milestones=[10, 30, 30, 80], gamma=0.3), lr_scheduler.MultiStepLR),
        ("ExponentialLR", dict(gamma=0.97), lr_scheduler.ExponentialLR),
        ("ConstantLR", dict(factor=0.25, total_iters=12), lr_scheduler.ConstantLR),
        ("LinearLR", dict(start_factor=0.1, end_factor=0.9, total_iters=20), lr_scheduler.LinearLR),
        ("PolynomialLR", dict(total_iters=60, power=2.0), lr_scheduler.PolynomialLR),
        ("CosineAnnealingLR", dict(T_max=15, eta_min=0.01), lr_scheduler.CosineAnnealingLR),
        ("CosineAnnealingWarmRestarts", dict(T_0=6, T_mult=2, eta_min=0.02), lr_scheduler.CosineAnnealingWarmRestarts),
        ("OneCycleLR", dict(max_lr=[1.0, 0.5], total_steps=101), lr_scheduler.OneCycleLR),
        ("OneCycleLR", dict(max_lr=0.3, epochs=11, steps_per_epoch=10, pct_start=0.4, anneal_strategy="linear",
                            three_phase=True, div_factor=10.0, final_div_factor=100.0), lr_scheduler.OneCycleLR),
        ("LambdaLR", {}, lambda o: lr_scheduler.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)])),
        ("Sequential", {}, lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o, 0.1, total_iters=10), lr_scheduler.CosineAnnealingLR(o, 30),
                lr_scheduler.ExponentialLR(o, 0.9)], [10, 40])),
        ("SequentialRestarts", {}, lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.CosineAnnealingWarmRestarts(o, 5), lr_scheduler.StepLR(o, 3)], [20])),
        ("Chained", {}, lambda o: [lr_scheduler.LinearLR(o, 0.5, total_iters=9), lr_scheduler.ExponentialLR(o, 0.95)]),
    ]


def run_schedule(name, arguments, make, kind):
    params = [torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    optimizer = getattr(torch.optim, kind)([{"params": params[:1]}, {"params": params[1:], "lr": 0.1}], lr=0.4, **options)
    made = make(optimizer, **arguments)
    made = made if isinstance(made, list) else [made]
    rows = []
    for _ in range(STEPS + 1):
        rows.append([number for group in optimizer.param_groups
                     for number in (group["lr"], group["momentum"] if kind == "SGD" else group["betas"][0])])
        optimizer.step()
        if len(rows) <= STEPS:
            for schedule in made:
                schedule.step()
    return {"name": name, "arguments": arguments, "kind": kind, "rows": torch.tensor(rows, dtype=torch.float64)}


def run_plateau(options):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    generator = torch.Generator().manual_seed(3)
    metrics = (torch.rand(STEPS, generator=generator) + torch.linspace(2, 1, STEPS)).tolist()
    lrs = []
    for metric in metrics:
        schedule.step(metric)
        lrs.append(optimizer.param_groups[0]["lr"])
    return {"options": options, "metrics": metrics, "lrs": lrs}


def sampler_cases():
    weights = [0.1, 0.0, 2.0, 3.5, 0.7]
    dataset = TensorDataset(torch.arange(23))

    def epochs(make, count=3):
        torch.manual_seed(11)
        sampler = make()
        return [list(sampler) for _ in range(count)]

    def loader(**options):
        torch.manual_seed(12)
        made = DataLoader(dataset, batch_size=5, **options)
        return [[int(i) for batch in made for i in batch[0]] for _ in range(3)]

    def given():
        generator = torch.Generator().manual_seed(99)
        return loader(shuffle=True, generator=generator)

    return {
        "random": epochs(lambda: RandomSampler(dataset)),
        "random_more": epochs(lambda: RandomSampler(dataset, num_samples=50)),
        "random_replaced": epochs(lambda: RandomSampler(dataset, replacement=True, num_samples=70)),
        "weighted": epochs(lambda: WeightedRandomSampler(weights, 40)),
        "subset": epochs(lambda: SubsetRandomSampler([4, 8, 15, 16, 22])),
        "loader": loader(shuffle=True),
        "loader_drop_last": loader(shuffle=True, drop_last=True),
        "loader_generator": given(),
    }


def layers():
    """Name, constructor, inputs (sizes, or 'i' for indices)."""
    encoder = dict(d_model=12, nhead=3, dim_feedforward=20, dropout=0.0)
    return [
        ("Linear", lambda: nn.Linear(7, 5), [4, 7]),
        ("LinearNoBias", lambda: nn.Linear(7, 5, bias=False), [7]),
        ("Conv2d", lambda: nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, groups=2), [2, 4, 8, 7]),
        ("BatchNorm2d", lambda: nn.BatchNorm2d(4), [3, 4, 5, 5]),
        ("LayerNorm", lambda: nn.LayerNorm([4, 6]), [3, 4, 6]),
        ("Embedding", lambda: nn.Embedding(10, 4, padding_idx=2), "i"),
        ("GELU", lambda: nn.GELU(), [3, 5]),
        ("MaxPool2d", lambda: nn.MaxPool2d(3, 2, 1), [2, 3, 7, 7]),
        ("Flatten", lambda: nn.Flatten(), [2, 3, 4]),
        ("Sequential", lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Sequential(nn.Dropout(0.0), nn.Linear(8, 2))),
         [5, 6]),
        ("Encoder", lambda: nn.TransformerEncoderLayer(**encoder), [6, 2, 12]),
        ("EncoderFirst", lambda: nn.TransformerEncoderLayer(**encoder, batch_first=True, norm_first=True,
                                                            activation="gelu"), [2, 6, 12]),
    ]


def more_layers():
    """Name, constructor, inputs (sizes or tensors)."""
    scores, classes = [5, 4], torch.tensor([1, 0, 3, 2, 1])
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0])
    chances = torch.rand(5, 4, generator=torch.Generator().manual_seed(1))
    weight = torch.tensor([1.0, 2.0, 0.5, 1.5])
    return [
        *((name, getattr(nn, name), [[3, 5]]) for name in ("Tanh", "Sigmoid", "ReLU6", "SiLU", "Mish", "SELU", "Hardswish", "Hardsigmoid",
                                                         "LogSigmoid", "ELU", "CELU", "LeakyReLU", "Hardtanh", "Hardshrink", "Softshrink",
                                                         "Softplus", "PReLU", "Identity")),
        ("Threshold", lambda: nn.Threshold(0.1, -2.0), [[3, 5]]), ("GLU", lambda: nn.GLU(1), [[3, 6]]),
        ("Softmax", lambda: nn.Softmax(1), [[3, 5]]), ("LogSoftmax", lambda: nn.LogSoftmax(1), [[3, 5]]),
        ("Unflatten", lambda: nn.Unflatten(1, (2, 3)), [[4, 6]]), ("PixelShuffle", lambda: nn.PixelShuffle(2), [[1, 8, 2, 3]]),
        ("PixelUnshuffle", lambda: nn.PixelUnshuffle(2), [[1, 2, 4, 6]]),
        ("MaxPool1d", lambda: nn.MaxPool1d(3, 2, 1), [[2, 3, 9]]), ("MaxPool3d", lambda: nn.MaxPool3d(2), [[1, 2, 4, 4, 4]]),
        ("AvgPool1d", lambda: nn.AvgPool1d(3, 2, 1), [[2, 3, 9]]),
        ("AvgPool2d", lambda: nn.AvgPool2d((3, 2), 2, (1, 0), ceil_mode=True, count_include_pad=False), [[2, 3, 8, 7]]),
        ("AvgPool3d", lambda: nn.AvgPool3d(2), [[1, 2, 4, 4, 4]]), ("AdaptiveAvgPool1d", lambda: nn.AdaptiveAvgPool1d(3), [[2, 3, 7]]),
        ("AdaptiveAvgPool2d", lambda: nn.AdaptiveAvgPool2d((2, 3)), [[2, 3, 5, 7]]),
        ("AdaptiveMaxPool2d", lambda: nn.AdaptiveMaxPool2d(2), [[2, 3, 5, 7]]),
        ("ZeroPad2d", lambda: nn.ZeroPad2d((1, 2, 0, 3)), [[1, 2, 3, 4]]), ("ConstantPad", lambda: nn.ConstantPad1d((1, 2), 3.5), [[1, 2, 4]]),
        ("ReflectionPad", lambda: nn.ReflectionPad2d((1, 2, 0, 1)), [[1, 2, 3, 4]]),
        ("ReplicationPad", lambda: nn.ReplicationPad1d((1, 2)), [[1, 2, 4]]),
        ("CircularPad", lambda: nn.CircularPad1d((1, 2)) if hasattr(nn, "CircularPad1d") else Padded("circular", (1, 2)), [[1, 2, 4]]),
        ("Conv1d", lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), [[2, 4, 11]]),
        ("Conv3d", lambda: nn.Conv3d(2, 3, (2, 3, 1), bias=False), [[1, 2, 4, 5, 3]]),
        ("ConvTranspose1d", lambda: nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2), [[2, 4, 5]]),
        ("ConvTranspose2d", lambda: nn.ConvTranspose2d(3, 2, (3, 2), 2, 1), [[1, 3, 4, 5]]),
        ("ConvTranspose3d", lambda: nn.ConvTranspose3d(2, 2, 2), [[1, 2, 3, 3, 2]]),
        ("BatchNorm1d", lambda: nn.BatchNorm1d(4), [[3, 4, 5]]), ("BatchNorm3d", lambda: nn.BatchNorm3d(2), [[2, 2, 3, 3, 2]]),
        ("GroupNorm", lambda: nn.GroupNorm(2, 4), [[3, 4, 5]]), ("InstanceNorm", lambda: nn.InstanceNorm2d(3, affine=True), [[2, 3, 4, 5]]),
        ("RNN", lambda: nn.RNN(3, 4, 2), [[5, 2, 3]]), ("RNNRelu", lambda: nn.RNN(3, 4, nonlinearity="relu"), [[5, 2, 3], [1, 2, 4]]),
        ("LSTM", lambda: nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True), [[2, 5, 3], [4, 2, 4], [4, 2, 4]]),
        ("LSTMNoBatch", lambda: nn.LSTM(3, 4, bias=False), [[5, 3]]), ("GRU", lambda: nn.GRU(3, 4, bidirectional=True), [[5, 2, 3]]),
        *((name, getattr(nn, name), [scores, [5, 4]]) for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")),
        ("HuberSum", lambda: nn.HuberLoss("sum", 0.5), [scores, [5, 4]]), ("MSENone", lambda: nn.MSELoss(reduction="none"), [scores, [5, 4]]),
        ("CrossEntropyLoss", nn.CrossEntropyLoss, [scores, classes]),
        ("CrossEntropyWeighted", lambda: nn.CrossEntropyLoss(weight, ignore_index=0, label_smoothing=0.1), [scores, classes]),
        ("NLLLoss", lambda: nn.NLLLoss(weight), [scores, classes]), ("BCELoss", nn.BCELoss, [chances, chances.round()]),
        ("BCEWithLogitsLoss", lambda: nn.BCEWithLogitsLoss(pos_weight=weight), [scores, chances.round()]),
        ("KLDivLoss", lambda: nn.KLDivLoss(reduction="sum"), [scores, chances]), ("SoftMarginLoss", nn.SoftMarginLoss, [[5], signs]),
        ("PoissonNLLLoss", lambda: nn.PoissonNLLLoss(full=True), [scores, chances * 4]),
        ("HingeEmbeddingLoss", nn.HingeEmbeddingLoss, [[5], signs]),
        ("CosineEmbeddingLoss", lambda: nn.CosineEmbeddingLoss(0.2), [scores, [5, 4], signs]),
        ("MarginRankingLoss", lambda: nn.MarginRankingLoss(0.3), [[5], [5], signs]),
        ("TripletMarginLoss", lambda: nn.TripletMarginLoss(swap=True), [scores, [5, 4], [5, 4]]),
        ("MultiMarginLoss", lambda: nn.MultiMarginLoss(p=2, weight=weight), [scores, classes]),
        ("MultiLabelMarginLoss", nn.MultiLabelMarginLoss, [[2, 4], torch.tensor([[1, 0, -1, 2], [3, -1, 0, 1]])]),
        ("CTCLoss", nn.CTCLoss, [torch.randn(6, 2, 4, generator=torch.Generator().manual_seed(2)).log_softmax(2),
                                 torch.tensor([[1, 2], [3, 1]]), torch.tensor([6, 5]), torch.tensor([2, 1])]),
    ]


def newer_layers():
    """Like more_layers(), for layers added later."""
    torch.manual_seed(9)
    stack = dict(d_model=8, nhead=2, dim_feedforward=12, dropout=0.0)
    ahead = nn.Transformer.generate_square_subsequent_mask(5)
    hidden = torch.tensor([[False, False, False, True], [False, True, True, True]])
    ints, offsets = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 3, 3, 6])
    ones = torch.ones(5, 4)
    image, volume = torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(4)), torch.randn(1, 2, 4, 4, 4)
    line = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(5))
    pooled = [nn.functional.max_pool1d(line, 2, return_indices=True), nn.functional.max_pool2d(image, 2, return_indices=True),
              nn.functional.max_pool3d(volume, 2, return_indices=True)]
    labels = torch.tensor([[1.0, 0.0, 1.0, 0.0]] * 3 + [[0.0, 1.0, 0.0, 1.0]] * 2)
    return [
        ("RNNCell", lambda: nn.RNNCell(3, 4), [[5, 3]]), ("RNNCellRelu", lambda: nn.RNNCell(3, 4, nonlinearity="relu"), [[5, 3], [5, 4]]),
        ("LSTMCell", lambda: nn.LSTMCell(3, 4), [[5, 3], [5, 4], [5, 4]]), ("GRUCell", lambda: nn.GRUCell(3, 4, bias=False), [[5, 3], [5, 4]]),
        ("GRUCellNoBatch", lambda: nn.GRUCell(3, 4), [[3]]),
        ("DecoderLayer", lambda: nn.TransformerDecoderLayer(**stack), [[5, 2, 8], [4, 2, 8]]),
        ("DecoderLayerMasks", lambda: nn.TransformerDecoderLayer(**stack, batch_first=True, norm_first=True, activation="gelu"),
         [[2, 5, 8], [2, 4, 8], ahead, None, None, hidden]),
        ("TransformerEncoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(**stack), 3), [[5, 2, 8], ahead]),
        ("TransformerEncoderNorm", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(**stack, batch_first=True), 2, nn.LayerNorm(8)),
         [[2, 4, 8], None, hidden]),
        ("TransformerDecoder", lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(**stack), 2, nn.LayerNorm(8)),
         [[5, 2, 8], [4, 2, 8], ahead]),
        ("Transformer", lambda: nn.Transformer(num_encoder_layers=2, num_decoder_layers=2, **stack),
         [[4, 2, 8], [5, 2, 8], None, ahead, None, hidden, None, hidden]),
        *((f"EmbeddingBag{mode}", lambda mode=mode: nn.EmbeddingBag(10, 4, mode=mode, padding_idx=2), [ints, offsets])
          for mode in ("sum", "mean", "max")),
        ("EmbeddingBagRows", lambda: nn.EmbeddingBag(10, 4, mode="sum"), [ints.view(2, 4), None, torch.rand(2, 4)]),
        ("EmbeddingBagLast", lambda: nn.EmbeddingBag(10, 4, include_last_offset=True), [ints, torch.tensor([0, 3, 8])]),
        ("Bilinear", lambda: nn.Bilinear(3, 4, 5), [[6, 3], [6, 4]]),
        ("LPPool1d", lambda: nn.LPPool1d(2, 3, 2), [torch.rand(2, 3, 9)]), ("LPPool2d", lambda: nn.LPPool2d(3, (2, 3), ceil_mode=True), [torch.rand(2, 3, 7, 8)]),
        ("FractionalMaxPool2d", lambda: nn.FractionalMaxPool2d(3, output_size=(4, 5)), [[2, 3, 9, 10]]),
        ("FractionalMaxPool2dRatio", lambda: nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.7)), [[3, 9, 10]]),
        ("FractionalMaxPool3d", lambda: nn.FractionalMaxPool3d(2, output_size=3), [[1, 2, 6, 7, 8]]),
        *((f"MaxUnpool{i + 1}d", lambda i=i: getattr(nn, f"MaxUnpool{i + 1}d")(2), list(pooled[i])) for i in range(3)),
        ("Upsample", lambda: nn.Upsample(scale_factor=2), [[1, 2, 3, 4]]), ("UpsampleSize", lambda: nn.Upsample(size=(5, 7), mode="bilinear"), [[1, 2, 3, 4]]),
        ("UpsampleCubic", lambda: nn.Upsample(scale_factor=(1.5, 2.3), mode="bicubic", align_corners=False), [[1, 2, 5, 4]]),
        ("UpsampleLine", lambda: nn.Upsample(scale_factor=2.5, mode="linear", align_corners=True), [[1, 2, 5]]),
        ("UpsampleVolume", lambda: nn.Upsample(size=5, mode="trilinear"), [[1, 2, 3, 2, 4]]),
        ("UpsampleExact", lambda: nn.Upsample(scale_factor=1.7, mode="nearest-exact"), [[1, 2, 5, 4]]),
        ("UpsamplingNearest2d", lambda: nn.UpsamplingNearest2d(scale_factor=3), [[1, 2, 3, 4]]),
        ("UpsamplingBilinear2d", lambda: nn.UpsamplingBilinear2d(size=(6, 5)), [[1, 2, 3, 4]]),
        ("Unfold", lambda: nn.Unfold((2, 3), padding=1, stride=2), [[2, 3, 5, 6]]), ("Fold", lambda: nn.Fold((4, 5), (2, 3), padding=1), [[2, 12, 25]]),
        ("LocalResponseNorm", lambda: nn.LocalResponseNorm(3, 0.2, 0.6, 1.5), [[2, 5, 3, 4]]), ("LocalResponseNorm1d", lambda: nn.LocalResponseNorm(2), [[2, 5, 3]]),
        ("InstanceNorm1d", lambda: nn.InstanceNorm1d(3), [[2, 3, 7]]), ("InstanceNorm2d", lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), [[2, 3, 4, 5]]),
        ("InstanceNorm3d", lambda: nn.InstanceNorm3d(2), [[1, 2, 3, 4, 2]]), ("InstanceNormNoBatch", lambda: nn.InstanceNorm1d(3), [[3, 7]]),
        ("ChannelShuffle", lambda: Shuffled(), [[1, 6, 2, 3]]), ("Softsign", nn.Softsign, [[3, 5]]), ("Tanhshrink", nn.Tanhshrink, [[3, 5]]),
        ("Softmin", lambda: nn.Softmin(1), [[3, 5]]), ("Softmax2d", nn.Softmax2d, [[2, 3, 4, 5]]), ("RReLU", nn.RReLU, [[6, 5]]),
        ("AlphaDropout", lambda: nn.AlphaDropout(0.3), [[6, 5]]), ("FeatureAlphaDropout", lambda: nn.FeatureAlphaDropout(0.3), [[6, 5, 2]]),
        ("Dropout1d", lambda: nn.Dropout1d(0.4), [[6, 5, 2]]), ("Dropout2d", lambda: nn.Dropout2d(0.4), [[6, 5, 2, 2]]),
        ("Dropout3d", lambda: nn.Dropout3d(0.4), [[6, 5, 2, 1, 2]]),
        ("ConstantPad3d", lambda: nn.ConstantPad3d(1, 2.5), [[1, 2, 3, 2, 2]]), ("ReflectionPad1d", lambda: nn.ReflectionPad1d(2), [[2, 3, 5]]),
        ("ReplicationPad3d", lambda: nn.ReplicationPad3d((1, 0, 2, 1, 0, 1)), [[1, 2, 3, 2, 2]]),
        ("CosineSimilarity", lambda: nn.CosineSimilarity(1), [[5, 4], [5, 4]]), ("PairwiseDistance", lambda: nn.PairwiseDistance(1, keepdim=True), [[5, 4], [5, 4]]),
        ("GaussianNLLLoss", lambda: nn.GaussianNLLLoss(full=True), [[5, 4], [5, 4], ones * 0.3]),
        ("GaussianNLLLossRows", lambda: nn.GaussianNLLLoss(reduction="sum"), [[5, 4], [5, 4], torch.tensor([0.5, 0.0, 1.0, 2.0, 3.0])]),
        ("MultiLabelSoftMarginLoss", lambda: nn.MultiLabelSoftMarginLoss(torch.tensor([1.0, 2.0, 0.5, 1.5])), [[5, 4], labels]),
        ("TripletMarginWithDistanceLoss", lambda: nn.TripletMarginWithDistanceLoss(swap=True, margin=0.7), [[5, 4], [5, 4], [5, 4]]),
        ("AdaptiveLogSoftmax", lambda: nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 12], head_bias=True),
         [[6, 16], torch.tensor([0, 19, 4, 5, 13, 2])]),
        ("ModuleList", lambda: Listed(), [[2, 3]]),
    ]


class Listed(nn.Module):
    """Containers of modules and parameters."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 4), nn.Linear(4, 2)])
        self.heads = nn.ModuleDict({"tanh": nn.Tanh(), "linear": nn.Linear(2, 2)})
        self.scales = nn.ParameterList([nn.Parameter(torch.full((2,), 0.5)), nn.Parameter(torch.full((2,), 3.0))])
        self.named = nn.ParameterDict({"shift": nn.Parameter(torch.ones(2))})

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        x = self.heads["linear"](self.heads["tanh"](x))
        return x * self.scales[0] + self.scales[1] + self.named["shift"]


class Shuffled(nn.Module):
    """ChannelShuffle(2), which has no gradient in older PyTorch."""

    def forward(self, x):
        return x.unflatten(1, (2, 3)).transpose(1, 2).flatten(1, 2)


class Padded(nn.Module):
    """For older PyTorch, which lacks this layer."""

    def __init__(self, mode, sides):
        super().__init__()
        self.mode, self.sides = mode, sides

    def forward(self, x):
        return nn.functional.pad(x, self.sides, self.mode)


def flattened(value):
    return [item for part in value for item in flattened(part)] if isinstance(value, (tuple, list)) else [value]


def run_more(name, make, inputs):
    torch.manual_seed(22)
    module = make()
    state = {key: value.clone() for key, value in module.state_dict().items()}
    given = [torch.randn(item) if isinstance(item, list) else None if item is None else item.clone() for item in inputs]
    if given[0].is_floating_point():
        given[0].requires_grad_(True)
    own = (given[0], tuple(given[1:])) if "LSTM" in name and len(given) == 3 else given
    torch.manual_seed(23)
    outputs = flattened(module(*own))
    directions = [torch.randn(output.shape) for output in outputs]
    torch.autograd.backward(outputs, directions)
    return {"name": name, "state": state, "inputs": [None if item is None else item.detach() for item in given], "outputs": [item.detach() for item in outputs],
            "directions": directions, "grad": given[0].grad, "grads": {key: p.grad for key, p in module.named_parameters()}}


def run_layer(name, make, sizes):
    torch.manual_seed(21)
    module = make()
    state = {key: value.clone() for key, value in module.state_dict().items()}
    x = torch.randint(10, [3, 5]) if sizes == "i" else torch.randn(sizes, requires_grad=True)
    y = module(x)
    direction = torch.randn(y.shape)
    y.backward(direction)
    return {
        "name": name, "state": state, "names": list(state), "x": x.detach(), "y": y.detach(), "direction": direction,
        "x_grad": None if sizes == "i" else x.grad, "after": module.state_dict(),
        "grads": {key: p.grad for key, p in module.named_parameters()},
    }


def clipping():
    generator = torch.Generator().manual_seed(8)
    grads = [torch.randn(size, generator=generator) for size in ([6, 4], [100], [])]
    cases = []
    for max_norm, norm_type in ((1.0, 2.0), (1e6, 2.0), (0.5, float("inf")), (3.0, 1.0), (2.0, 3.0)):
        params = [torch.zeros_like(g) for g in grads]
        for p, g in zip(params, grads):
            p.grad = g.clone()
        norm = nn.utils.clip_grad_norm_(params, max_norm, norm_type)
        cases.append({"max_norm": max_norm, "norm_type": norm_type, "norm": float(norm), "grads": [p.grad for p in params]})
    return {"grads": grads, "cases": cases, "clamped": [g.clamp(-0.7, 0.7) for g in grads]}


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    optimizers = [run_optimizer(*case, dtype) for case in optimizer_cases() for dtype in (torch.float64, torch.float32)]
    torch.save(optimizers, folder / "optimizers.pt")
    torch.save([run_sparse_optimizer(*case, dtype) for case in sparse_optimizer_cases()
                for dtype in (torch.float64, torch.float32)], folder / "sparse_optimizers.pt")
    searches = ({}, {"line_search_fn": "strong_wolfe"}, {"lr": 0.3, "history_size": 3, "max_iter": 5},
                {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 6, "max_eval": 9})
    starts = [{"lr": 0.001, **options} if "line_search_fn" not in options else options for options in searches]
    # Many steps only if they do not amplify rounding errors: one or two small iterations at a time.
    slow = ({"lr": 0.01, "max_iter": 1, "history_size": 5}, {"lr": 0.05, "max_iter": 2, "history_size": 10},
            {"line_search_fn": "strong_wolfe", "max_iter": 1})
    torch.save([run_lbfgs(options, torch.float64, 8) for options in starts] +
               [run_lbfgs(options, torch.float64, 100) for options in slow], folder / "lbfgs.pt")
    made = [run_schedule(*case, kind) for case in schedules() for kind in ("SGD", "Adam")]
    plateaus = [run_plateau(o) for o in ({"patience": 4}, {"mode": "max", "patience": 3, "cooldown": 5, "factor": 0.5},
                                         {"threshold_mode": "abs", "threshold": 0.2, "patience": 2, "min_lr": 1e-3})]
    torch.save({"schedules": made, "plateaus": plateaus}, folder / "schedules.pt")
    torch.save(sampler_cases(), folder / "samplers.pt")
    torch.save([run_layer(*case) for case in layers()], folder / "layers.pt")
    torch.save([run_more(*case) for case in more_layers()], folder / "more_layers.pt")
    torch.save([run_more(*case) for case in newer_layers()], folder / "newer_layers.pt")
    torch.save(clipping(), folder / "clipping.pt")


if __name__ == "__main__":
    main(sys.argv[1])
