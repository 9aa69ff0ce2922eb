# RNN, GRU and LSTM. ONNX has W[directions, gates * hidden, input], R[directions, gates * hidden, hidden] and
# B[directions, 2 * gates * hidden]; gates are i o f c (LSTM) and z r h (GRU), torch's i f c o and r z n.


def _check_count(names: Optional[List[str]], count: int) -> None:
    if names is not None and len(names) != count:
        raise RuntimeError("expected {} activations but got {}".format(count, len(names)))


def _is_default(names: Optional[List[str]], expected: List[str]) -> bool:
    if names is None:
        return True
    result = True
    for i in range(len(names)):
        if names[i] != expected[i % len(expected)]:
            result = False
    return result


def _activation(name: str, x: Tensor, alpha: float, beta: float) -> Tensor:
    if name == "Sigmoid":
        return torch.sigmoid(x)
    if name == "Tanh":
        return torch.tanh(x)
    if name == "Relu":
        return torch.relu(x)
    if name == "Affine":
        return x * alpha + beta
    if name == "LeakyRelu":
        return torch.leaky_relu(x, alpha)
    if name == "ThresholdedRelu":
        return torch.where(x >= alpha, x, torch.zeros_like(x))
    if name == "ScaledTanh":
        return torch.tanh(x * beta) * alpha
    if name == "HardSigmoid":
        return torch.clamp(x * alpha + beta, 0, 1)
    if name == "Elu":
        return torch.elu(x, alpha)
    if name == "Softsign":
        return x / (torch.abs(x) + 1)
    if name == "Softplus":
        return torch.log(torch.exp(x) + 1)
    raise RuntimeError("unknown activation " + name)


def _default_alpha(name: str) -> float:
    if name == "LeakyRelu":
        return 0.01
    if name == "HardSigmoid":
        return 0.2
    return 1.0


def _default_beta(name: str) -> float:
    if name == "HardSigmoid":
        return 0.5
    return 0.0


# Values for those activations that take one, in order.
def _numbers(names: List[str], given: Optional[List[float]], is_beta: bool) -> List[float]:
    result: List[float] = []
    next = 0
    for name in names:
        takes = name == "Affine" or name == "ScaledTanh" or name == "HardSigmoid"
        if not is_beta:
            takes = takes or name == "LeakyRelu" or name == "ThresholdedRelu" or name == "Elu"
        if given is not None and takes and next < len(given):
            result.append(given[next])
            next += 1
        else:
            result.append(_default_beta(name) if is_beta else _default_alpha(name))
    return result


# Shapes as the standard says them, of `gates` gates.
def _check_shapes(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Optional[Tensor],
    sequence_lens: Optional[Tensor],
    states: List[Optional[Tensor]],
    P: Optional[Tensor],
    directions: int,
    gates: int,
    hidden_size: Optional[int],
    layout: int,
) -> None:
    if X.dim() != 3 or R.dim() != 3:
        raise RuntimeError("X has {} dimensions and R {}, not 3".format(X.dim(), R.dim()))
    hidden = R.size(2) if hidden_size is None else hidden_size
    batch = X.size(1 if layout == 0 else 0)
    _check_shape("W", W, [directions, gates * hidden, X.size(2)])
    _check_shape("R", R, [directions, gates * hidden, hidden])
    if B is not None:
        _check_shape("B", B, [directions, 2 * gates * hidden])
    if P is not None:
        _check_shape("P", P, [directions, 3 * hidden])
    if sequence_lens is not None:
        _check_shape("sequence_lens", sequence_lens, [batch])
        _check_lengths(sequence_lens, X.size(0 if layout == 0 else 1))
    for state in states:
        if state is not None:
            wanted = [directions, batch, hidden] if layout == 0 else [batch, directions, hidden]
            _check_shape("an initial state", state, wanted)


def _check_shape(name: str, x: Tensor, wanted: List[int]) -> None:
    __torch__.onnx.linear._check_size("dimensions of " + name, x.dim(), len(wanted))
    for i in range(len(wanted)):
        __torch__.onnx.linear._check_size("a size of " + name, x.size(i), wanted[i])


def _check_lengths(lengths: Tensor, time: int) -> None:
    if bool(torch.any(torch.logical_or(lengths < 0, lengths > time))):
        raise RuntimeError("sequence_lens has a length that is not between 0 and {}".format(time))


def _check_clip(clip: Optional[float]) -> None:
    if clip is not None and not clip > 0.0:
        raise RuntimeError("clip is {}".format(clip))


def _directions(direction: str) -> int:
    return 2 if direction == "bidirectional" else 1


def _clipped(x: Tensor, clip: Optional[float]) -> Tensor:
    if clip is None:
        return x
    return torch.clamp(x, -clip, clip)


# Rows of a weight's gates in torch's order.
def _reordered(weight: Tensor, order: List[int]) -> Tensor:
    parts = torch.chunk(weight, len(order), 0)
    taken: List[Tensor] = []
    for i in order:
        taken.append(parts[i])
    return torch.cat(taken, 0)


def _torch_weights(W: Tensor, R: Tensor, B: Optional[Tensor], order: List[int]) -> List[Tensor]:
    weights: List[Tensor] = []
    for d in range(W.size(0)):
        weights.append(_reordered(W[d], order))
        weights.append(_reordered(R[d], order))
        if B is not None:
            both = torch.chunk(B[d], 2, 0)
            weights.append(_reordered(both[0], order))
            weights.append(_reordered(both[1], order))
    return weights


# [time, batch, directions * hidden] → [time, directions, batch, hidden]
def _by_direction(output: Tensor, directions: int) -> Tensor:
    parts = output.reshape([output.size(0), output.size(1), directions, output.size(2) // directions])
    return torch.transpose(parts, 1, 2)


def _flip(X: Tensor, lengths: Optional[Tensor]) -> Tensor:
    if lengths is None:
        return torch.flip(X, [0])
    return __torch__.onnx.index.ReverseSequence_10(X, lengths)


# Where sequences are over, the state stays and the output is zero.
def _is_running(step: int, lengths: Optional[Tensor]) -> Optional[Tensor]:
    if lengths is None:
        return None
    return torch.unsqueeze(lengths > step, 1)


def LSTM_7(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Optional[Tensor] = None,
    sequence_lens: Optional[Tensor] = None,
    initial_h: Optional[Tensor] = None,
    initial_c: Optional[Tensor] = None,
    P: Optional[Tensor] = None,
    *,
    activation_alpha: Optional[List[float]] = None,
    activation_beta: Optional[List[float]] = None,
    activations: Optional[List[str]] = None,
    clip: Optional[float] = None,
    direction: str = "forward",
    hidden_size: Optional[int] = None,
    input_forget: int = 0,
    layout: int = 0,
) -> Tuple[Tensor, Tensor, Tensor]:
    directions = _directions(direction)
    _check_count(activations, 3 * directions)
    _check_clip(clip)
    if __torch__.onnx.control._at_load():
        states: List[Optional[Tensor]] = [initial_h, initial_c]
        _check_shapes(X, W, R, B, sequence_lens, states, P, directions, 4, hidden_size, layout)
    if layout != 0:
        X = torch.transpose(X, 0, 1)
    zeros = torch.zeros([directions, X.size(1), R.size(2)], dtype=X.dtype)
    h = zeros if initial_h is None else (initial_h if layout == 0 else torch.transpose(initial_h, 0, 1))
    c = zeros if initial_c is None else (initial_c if layout == 0 else torch.transpose(initial_c, 0, 1))
    names = ["Sigmoid", "Tanh", "Tanh"]
    is_plain = P is None and clip is None and input_forget == 0 and sequence_lens is None
    if is_plain and _is_default(activations, names):
        if direction == "reverse":
            X = torch.flip(X, [0])
        weights = _torch_weights(W, R, B, [0, 2, 3, 1])
        output, last_h, last_c = torch.lstm(
            X, [h, c], weights, B is not None, 1, 0.0, False, direction == "bidirectional", False
        )
        if direction == "reverse":
            output = torch.flip(output, [0])
        Y = _by_direction(output, directions)
    else:
        functions = names + names if activations is None else activations
        alphas = _numbers(functions, activation_alpha, False)
        betas = _numbers(functions, activation_beta, True)
        outputs: List[Tensor] = []
        hs: List[Tensor] = []
        cs: List[Tensor] = []
        for d in range(directions):
            is_back = direction == "reverse" or d == 1
            out, hd, cd = _lstm_direction(
                _flip(X, sequence_lens) if is_back else X,
                W[d],
                R[d],
                None if B is None else B[d],
                sequence_lens,
                h[d],
                c[d],
                None if P is None else P[d],
                functions[3 * d : 3 * d + 3],
                alphas[3 * d : 3 * d + 3],
                betas[3 * d : 3 * d + 3],
                clip,
                input_forget != 0,
            )
            outputs.append(_flip(out, sequence_lens) if is_back else out)
            hs.append(hd)
            cs.append(cd)
        Y = torch.stack(outputs, 1)
        last_h = torch.stack(hs)
        last_c = torch.stack(cs)
    if layout != 0:
        return torch.permute(Y, [2, 0, 1, 3]), torch.transpose(last_h, 0, 1), torch.transpose(last_c, 0, 1)
    return Y, last_h, last_c


def _lstm_direction(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Optional[Tensor],
    lengths: Optional[Tensor],
    h: Tensor,
    c: Tensor,
    P: Optional[Tensor],
    names: List[str],
    alphas: List[float],
    betas: List[float],
    clip: Optional[float],
    couples: bool,
) -> Tuple[Tensor, Tensor, Tensor]:
    hidden = R.size(1)
    outputs: List[Tensor] = []
    for t in range(X.size(0)):
        gates = torch.matmul(X[t], torch.t(W)) + torch.matmul(h, torch.t(R))
        if B is not None:
            gates = gates + (B[: 4 * hidden] + B[4 * hidden :])
        parts = torch.chunk(gates, 4, -1)
        i, o, f, g = parts[0], parts[1], parts[2], parts[3]
        if P is not None:
            i = i + P[:hidden] * c
            f = f + P[2 * hidden :] * c
        i = _activation(names[0], _clipped(i, clip), alphas[0], betas[0])
        if couples:
            f = torch.rsub(i, 1)
        else:
            f = _activation(names[0], _clipped(f, clip), alphas[0], betas[0])
        g = _activation(names[1], _clipped(g, clip), alphas[1], betas[1])
        next_c = f * c + i * g
        if P is not None:
            o = o + P[hidden : 2 * hidden] * next_c
        o = _activation(names[0], _clipped(o, clip), alphas[0], betas[0])
        next_h = o * _activation(names[2], next_c, alphas[2], betas[2])
        running = _is_running(t, lengths)
        if running is not None:
            outputs.append(torch.where(running, next_h, torch.zeros_like(h)))
            h = torch.where(running, next_h, h)
            c = torch.where(running, next_c, c)
        else:
            outputs.append(next_h)
            h = next_h
            c = next_c
    return torch.stack(outputs), h, c


def GRU_7(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Optional[Tensor] = None,
    sequence_lens: Optional[Tensor] = None,
    initial_h: Optional[Tensor] = None,
    *,
    activation_alpha: Optional[List[float]] = None,
    activation_beta: Optional[List[float]] = None,
    activations: Optional[List[str]] = None,
    clip: Optional[float] = None,
    direction: str = "forward",
    hidden_size: Optional[int] = None,
    linear_before_reset: int = 0,
    layout: int = 0,
) -> Tuple[Tensor, Tensor]:
    directions = _directions(direction)
    _check_count(activations, 2 * directions)
    _check_clip(clip)
    if __torch__.onnx.control._at_load():
        states: List[Optional[Tensor]] = [initial_h]
        _check_shapes(X, W, R, B, sequence_lens, states, None, directions, 3, hidden_size, layout)
    if layout != 0:
        X = torch.transpose(X, 0, 1)
    zeros = torch.zeros([directions, X.size(1), R.size(2)], dtype=X.dtype)
    h = zeros if initial_h is None else (initial_h if layout == 0 else torch.transpose(initial_h, 0, 1))
    names = ["Sigmoid", "Tanh"]
    is_plain = linear_before_reset != 0 and clip is None and sequence_lens is None
    if is_plain and _is_default(activations, names):
        if direction == "reverse":
            X = torch.flip(X, [0])
        weights = _torch_weights(W, R, B, [1, 0, 2])
        output, last_h = torch.gru(X, h, weights, B is not None, 1, 0.0, False, direction == "bidirectional", False)
        if direction == "reverse":
            output = torch.flip(output, [0])
        Y = _by_direction(output, directions)
    else:
        functions = names + names if activations is None else activations
        alphas = _numbers(functions, activation_alpha, False)
        betas = _numbers(functions, activation_beta, True)
        outputs: List[Tensor] = []
        hs: List[Tensor] = []
        for d in range(directions):
            is_back = direction == "reverse" or d == 1
            out, hd = _gru_direction(
                _flip(X, sequence_lens) if is_back else X,
                W[d],
                R[d],
                None if B is None else B[d],
                sequence_lens,
                h[d],
                functions[2 * d : 2 * d + 2],
                alphas[2 * d : 2 * d + 2],
                betas[2 * d : 2 * d + 2],
                clip,
                linear_before_reset != 0,
            )
            outputs.append(_flip(out, sequence_lens) if is_back else out)
            hs.append(hd)
        Y = torch.stack(outputs, 1)
        last_h = torch.stack(hs)
    if layout != 0:
        return torch.permute(Y, [2, 0, 1, 3]), torch.transpose(last_h, 0, 1)
    return Y, last_h


def _gru_direction(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Optional[Tensor],
    lengths: Optional[Tensor],
    h: Tensor,
    names: List[str],
    alphas: List[float],
    betas: List[float],
    clip: Optional[float],
    resets_after: bool,
) -> Tuple[Tensor, Tensor]:
    hidden = R.size(1)
    w_bias = torch.zeros([3 * hidden], dtype=X.dtype) if B is None else B[: 3 * hidden]
    r_bias = torch.zeros([3 * hidden], dtype=X.dtype) if B is None else B[3 * hidden :]
    outputs: List[Tensor] = []
    for t in range(X.size(0)):
        x = torch.chunk(torch.matmul(X[t], torch.t(W)) + w_bias, 3, -1)
        zr = torch.chunk(torch.matmul(h, torch.t(R[: 2 * hidden])) + r_bias[: 2 * hidden], 2, -1)
        z = _activation(names[0], _clipped(x[0] + zr[0], clip), alphas[0], betas[0])
        r = _activation(names[0], _clipped(x[1] + zr[1], clip), alphas[0], betas[0])
        last = torch.t(R[2 * hidden :])
        if resets_after:
            n = x[2] + r * (torch.matmul(h, last) + r_bias[2 * hidden :])
        else:
            n = x[2] + torch.matmul(r * h, last) + r_bias[2 * hidden :]
        n = _activation(names[1], _clipped(n, clip), alphas[1], betas[1])
        next_h = torch.rsub(z, 1) * n + z * h
        running = _is_running(t, lengths)
        if running is not None:
            outputs.append(torch.where(running, next_h, torch.zeros_like(h)))
            h = torch.where(running, next_h, h)
        else:
            outputs.append(next_h)
            h = next_h
    return torch.stack(outputs), h


def RNN_7(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Optional[Tensor] = None,
    sequence_lens: Optional[Tensor] = None,
    initial_h: Optional[Tensor] = None,
    *,
    activation_alpha: Optional[List[float]] = None,
    activation_beta: Optional[List[float]] = None,
    activations: Optional[List[str]] = None,
    clip: Optional[float] = None,
    direction: str = "forward",
    hidden_size: Optional[int] = None,
    layout: int = 0,
) -> Tuple[Tensor, Tensor]:
    directions = _directions(direction)
    _check_count(activations, directions)
    if clip is not None and clip < 0.0:
        clip = None
    if __torch__.onnx.control._at_load():
        states: List[Optional[Tensor]] = [initial_h]
        _check_shapes(X, W, R, B, sequence_lens, states, None, directions, 1, hidden_size, layout)
    if layout != 0:
        X = torch.transpose(X, 0, 1)
    zeros = torch.zeros([directions, X.size(1), R.size(2)], dtype=X.dtype)
    h = zeros if initial_h is None else (initial_h if layout == 0 else torch.transpose(initial_h, 0, 1))
    functions = ["Tanh", "Tanh"] if activations is None else activations
    alphas = _numbers(functions, activation_alpha, False)
    betas = _numbers(functions, activation_beta, True)
    outputs: List[Tensor] = []
    hs: List[Tensor] = []
    for d in range(directions):
        is_back = direction == "reverse" or d == 1
        x = _flip(X, sequence_lens) if is_back else X
        state = h[d]
        steps: List[Tensor] = []
        for t in range(x.size(0)):
            gate = torch.matmul(x[t], torch.t(W[d])) + torch.matmul(state, torch.t(R[d]))
            if B is not None:
                gate = gate + (B[d][: R.size(2)] + B[d][R.size(2) :])
            next = _activation(functions[d], _clipped(gate, clip), alphas[d], betas[d])
            running = _is_running(t, sequence_lens)
            if running is not None:
                steps.append(torch.where(running, next, torch.zeros_like(state)))
                state = torch.where(running, next, state)
            else:
                steps.append(next)
                state = next
        out = torch.stack(steps)
        outputs.append(_flip(out, sequence_lens) if is_back else out)
        hs.append(state)
    Y = torch.stack(outputs, 1)
    last = torch.stack(hs)
    if layout != 0:
        return torch.permute(Y, [2, 0, 1, 3]), torch.transpose(last, 0, 1)
    return Y, last
