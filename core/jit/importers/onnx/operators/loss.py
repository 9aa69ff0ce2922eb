# Losses, and the optimizers of ai.onnx.preview.training.


def NegativeLogLikelihoodLoss_12(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    *,
    ignore_index: Optional[int] = None,
    reduction: str = "mean",
) -> Tensor:
    if input.shape[:1] + input.shape[2:] != target.shape:
        raise RuntimeError("the input has shape {}, the target {}".format(input.shape, target.shape))
    at = target.to(torch.int64)
    kept = torch.ones_like(at, dtype=torch.bool)
    if ignore_index is not None:
        kept = torch.ne(at, ignore_index)
        at = torch.where(kept, at, torch.zeros_like(at))
    loss = -torch.squeeze(torch.gather(input, 1, torch.unsqueeze(at, 1)), 1)
    weights = kept.to(input.dtype)
    if weight is not None:
        weights = weights * weight[at]
    loss = torch.where(kept, loss, torch.zeros_like(loss)) * weights
    if reduction == "none":
        return loss
    if reduction == "sum":
        return torch.sum(loss)
    if weight is None and ignore_index is None:
        return torch.mean(loss)
    return torch.sum(loss) / torch.sum(weights)


def SoftmaxCrossEntropyLoss_12(
    scores: Tensor,
    labels: Tensor,
    weights: Optional[Tensor] = None,
    *,
    ignore_index: Optional[int] = None,
    reduction: str = "mean",
) -> Tuple[Tensor, Tensor]:
    log_prob = torch.log_softmax(scores, 1)
    loss = NegativeLogLikelihoodLoss_12(log_prob, labels, weights, ignore_index=ignore_index, reduction=reduction)
    return loss, log_prob


def training_Adagrad_1(
    R: Tensor,
    T: Tensor,
    inputs: List[Tensor],
    *,
    _outputs: int,
    decay_factor: float = 0.0,
    epsilon: float = 1e-06,
    norm_coefficient: float = 0.0,
) -> List[Tensor]:
    n = len(inputs) // 3
    rate = R / (T.to(R.dtype) * decay_factor + 1)
    new: List[Tensor] = []
    squares: List[Tensor] = []
    for i in range(n):
        x = inputs[i]
        g = inputs[n + i] + x * norm_coefficient
        h = inputs[2 * n + i] + g * g
        new.append(x - rate * g / (torch.sqrt(h) + epsilon))
        squares.append(h)
    return new + squares


def training_Adam_1(
    R: Tensor,
    T: Tensor,
    inputs: List[Tensor],
    *,
    _outputs: int,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-06,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> List[Tensor]:
    n = len(inputs) // 4
    t = T.to(R.dtype)
    one = torch.ones([], dtype=R.dtype)
    rate = torch.where(t > 0, R * torch.sqrt(one - torch.pow(one * beta, t)) / (one - torch.pow(one * alpha, t)), R)
    new: List[Tensor] = []
    firsts: List[Tensor] = []
    seconds: List[Tensor] = []
    for i in range(n):
        x = inputs[i]
        g = inputs[n + i] + x * norm_coefficient
        v = inputs[2 * n + i] * alpha + g * (1 - alpha)
        h = inputs[3 * n + i] * beta + g * g * (1 - beta)
        new.append((x - rate * v / (torch.sqrt(h) + epsilon)) * (1 - norm_coefficient_post))
        firsts.append(v)
        seconds.append(h)
    return new + firsts + seconds


def training_Momentum_1(
    R: Tensor,
    T: Tensor,
    inputs: List[Tensor],
    *,
    _outputs: int,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> List[Tensor]:
    n = len(inputs) // 3
    factor = torch.where(T > 0, torch.full([], beta, dtype=R.dtype), torch.ones([], dtype=R.dtype))
    new: List[Tensor] = []
    momenta: List[Tensor] = []
    for i in range(n):
        x = inputs[i]
        g = inputs[n + i] + x * norm_coefficient
        v = inputs[2 * n + i] * alpha + g * factor
        if mode == "nesterov":
            new.append(x - R * (g + v * alpha))
        else:
            new.append(x - R * v)
        momenta.append(v)
    return new + momenta
