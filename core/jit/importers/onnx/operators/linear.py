# Matrix products and convolutions.


# For checks at load.
def _check_size(what: str, size: int, wanted: int) -> None:
    if size != wanted:
        raise RuntimeError("{}: {} and not {}".format(what, size, wanted))


def _check_product(A: Tensor, B: Tensor) -> None:
    if A.dim() == 0 or B.dim() == 0:
        raise RuntimeError("a factor has no dimensions")
    _check_size("rows of the second factor", B.size(0 if B.dim() == 1 else -2), A.size(-1))
    for i in range(3, min(A.dim(), B.dim()) + 1):
        if A.size(-i) != 1 and B.size(-i) != 1:
            _check_size("a batch of the second factor", B.size(-i), A.size(-i))


def MatMul_1(A: Tensor, B: Tensor) -> Tensor:
    if __torch__.onnx.control._at_load():
        _check_product(A, B)
    if A.is_floating_point():
        return torch.matmul(A, B)
    return _integer_matmul(A, B)


# Products of integers wrap as those of their type do.
def _integer_matmul(A: Tensor, B: Tensor) -> Tensor:
    if A.dtype == torch.int64:
        return torch.matmul(A, B)
    return torch.matmul(A.to(torch.int64), B.to(torch.int64)).to(A.dtype)


# Before opset 7 `broadcast` says whether C may be smaller: the shapes do.
def Gemm_6(
    A: Tensor,
    B: Tensor,
    C: Tensor,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    return Gemm_7(A, B, C, alpha=alpha, beta=beta, transA=transA, transB=transB)


def Gemm_7(
    A: Tensor,
    B: Tensor,
    C: Optional[Tensor] = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    if __torch__.onnx.control._at_load():
        _check_gemm(A, B, C, transA != 0, transB != 0)
    if transA != 0:
        A = torch.t(A)
    is_linear = alpha == 1.0 and beta == 1.0 and A.is_floating_point()
    if is_linear and C is None:
        return torch.linear(A, B if transB != 0 else torch.t(B))
    if C is not None and is_linear and C.dim() == 1 and C.size(0) == (B.size(0) if transB != 0 else B.size(1)):
        return torch.linear(A, B if transB != 0 else torch.t(B), C)
    if transB != 0:
        B = torch.t(B)
    result = MatMul_1(A, B)
    if alpha != 1.0:
        result = (result * alpha).to(A.dtype)
    if C is not None:
        if beta != 1.0:
            C = (C * beta).to(A.dtype)
        result = result + C
    return result


def _check_gemm(A: Tensor, B: Tensor, C: Optional[Tensor], turns_a: bool, turns_b: bool) -> None:
    _check_size("dimensions of A", A.dim(), 2)
    _check_size("dimensions of B", B.dim(), 2)
    _check_size("rows of B", B.size(1 if turns_b else 0), A.size(0 if turns_a else 1))
    if C is None:
        return
    wanted = [A.size(1 if turns_a else 0), B.size(0 if turns_b else 1)]
    for i in range(C.dim()):
        size = C.size(C.dim() - 1 - i)
        if size != 1 and (i > 1 or size != wanted[1 - i]):
            raise RuntimeError("Gemm: C has {} for {}".format(size, wanted[1 - i] if i < 2 else 1))


# A letter that is there in capitals is another one.
def Einsum_12(inputs: List[Tensor], *, equation: str) -> Tensor:
    return torch.einsum(equation, inputs)


def Einsum_28(inputs: List[Tensor], *, equation: str) -> Tensor:
    return torch.einsum(equation, inputs)


def Det_11(X: Tensor) -> Tensor:
    return torch.det(X)


# ---- convolutions


# [begin of each dimension, end of each dimension] for auto_pad; `sizes` are those of the input.
def _auto_pads(
    auto_pad: str, sizes: List[int], kernel: List[int], strides: List[int], dilations: List[int]
) -> List[int]:
    n = len(kernel)
    pads = [0] * (2 * n)
    if auto_pad == "VALID":
        return pads
    for i in range(n):
        size = sizes[i]
        outputs = (size + strides[i] - 1) // strides[i]
        total = max(0, (outputs - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - size)
        less = total // 2
        pads[i] = less if auto_pad == "SAME_UPPER" else total - less
        pads[i + n] = total - less if auto_pad == "SAME_UPPER" else less
    return pads


# Windows over `n` dimensions have a number for each of them, and pads for both ends.
def _check_window(
    n: int, kernel: Optional[List[int]], strides: Optional[List[int]], dilations: Optional[List[int]],
    pads: Optional[List[int]],
) -> None:
    _check_count("kernel_shape", kernel, n)
    _check_count("strides", strides, n)
    _check_count("dilations", dilations, n)
    _check_count("pads", pads, 2 * n)


def _check_count(name: str, numbers: Optional[List[int]], count: int) -> None:
    if numbers is not None and len(numbers) != count:
        raise RuntimeError("{} has {} numbers and should have {}".format(name, len(numbers), count))


# Pads for torch: from the last dimension to the first, begin and end of each.
def _torch_pads(pads: List[int]) -> List[int]:
    n = len(pads) // 2
    order: List[int] = []
    for i in range(n):
        order.append(pads[n - 1 - i])
        order.append(pads[2 * n - 1 - i])
    return order


def Conv_1(
    X: Tensor,
    W: Tensor,
    B: Optional[Tensor] = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Optional[List[int]] = None,
    group: int = 1,
    kernel_shape: Optional[List[int]] = None,
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
) -> Tensor:
    n = W.dim() - 2
    if __torch__.onnx.control._at_load():
        _check_conv(X, W, B, group)
    if kernel_shape is not None and kernel_shape != W.shape[2:]:
        raise RuntimeError("Conv: kernel_shape is {}, but W has shape {}".format(kernel_shape, W.shape))
    _check_window(n, None, strides, dilations, pads)
    if auto_pad != "NOTSET" and pads is not None:
        raise RuntimeError("pads and auto_pad {} are both given".format(auto_pad))
    stride = [1] * n if strides is None else strides
    dilation = [1] * n if dilations is None else dilations
    if auto_pad != "NOTSET":
        pads = _auto_pads(auto_pad, X.shape[2:], W.shape[2:], stride, dilation)
    padding = [0] * n
    if pads is not None:
        if pads[:n] == pads[n:]:
            padding = pads[:n]
        else:
            X = torch.constant_pad_nd(X, _torch_pads(pads))
    return _conv(X, W, B, stride, padding, dilation, group)


def _check_conv(X: Tensor, W: Tensor, B: Optional[Tensor], group: int) -> None:
    _check_size("dimensions of X", X.dim(), W.dim())
    _check_size("channels of X", X.size(1), W.size(1) * group)
    if W.size(0) % group != 0:
        raise RuntimeError("W has {} outputs for {} groups".format(W.size(0), group))
    if B is not None:
        _check_size("dimensions of B", B.dim(), 1)
        _check_size("B", B.size(0), W.size(0))


def _conv(
    X: Tensor, W: Tensor, B: Optional[Tensor], stride: List[int], padding: List[int], dilation: List[int], group: int
) -> Tensor:
    n = len(stride)
    if n == 2:
        return torch.conv2d(X, W, B, stride, padding, dilation, group)
    if n == 1:
        return torch.conv1d(X, W, B, stride, padding, dilation, group)
    if n == 3:
        return torch.conv3d(X, W, B, stride, padding, dilation, group)
    raise RuntimeError("convolutions over {} dimensions are not supported".format(n))


def ConvTranspose_1(
    X: Tensor,
    W: Tensor,
    B: Optional[Tensor] = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Optional[List[int]] = None,
    group: int = 1,
    kernel_shape: Optional[List[int]] = None,
    output_padding: Optional[List[int]] = None,
    output_shape: Optional[List[int]] = None,
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
) -> Tensor:
    n = W.dim() - 2
    if __torch__.onnx.control._at_load():
        _check_size("dimensions of X", X.dim(), W.dim())
        _check_size("channels of X", X.size(1), W.size(0))
        if B is not None:
            _check_size("dimensions of B", B.dim(), 1)
            _check_size("B", B.size(0), W.size(1) * group)
    if kernel_shape is not None and kernel_shape != W.shape[2:]:
        raise RuntimeError("ConvTranspose: kernel_shape is {}, but W has shape {}".format(kernel_shape, W.shape))
    _check_window(n, None, strides, dilations, pads)
    _check_count("output_padding", output_padding, n)
    _check_count("output_shape", output_shape, n)
    if auto_pad != "NOTSET" and pads is not None:
        raise RuntimeError("pads and auto_pad {} are both given".format(auto_pad))
    stride = [1] * n if strides is None else strides
    if output_padding is not None and __torch__.onnx.control._at_load():
        for i in range(n):
            if output_padding[i] >= stride[i]:
                raise RuntimeError("output_padding is {}, but strides are {}".format(output_padding, stride))
    dilation = [1] * n if dilations is None else dilations
    extra = [0] * n if output_padding is None else output_padding
    if auto_pad != "NOTSET" and auto_pad != "VALID" or output_shape is not None:
        pads = _transposed_pads(auto_pad, X.shape[2:], W.shape[2:], stride, dilation, extra, output_shape)
    padding = [0] * n
    is_even = True
    if pads is not None:
        is_even = pads[:n] == pads[n:]
        padding = pads[:n]
    if is_even and _are_allowed(padding, extra, stride, dilation):
        return _conv_transpose(X, W, B, stride, padding, extra, group, dilation)
    # Without padding everything is computed; then the ends are cut off, or zeros with the bias are put on.
    whole = _conv_transpose(X, W, None, stride, [0] * n, [0] * n, group, dilation)
    cut: List[int] = []
    for i in range(n):
        at = n - 1 - i
        cut.append(0 if pads is None else -pads[at])
        cut.append(extra[at] - (0 if pads is None else pads[n + at]))
    whole = torch.constant_pad_nd(whole, cut)
    if B is not None:
        whole = whole + B.reshape([-1] + [1] * n)
    return whole


# What torch takes as it is.
def _are_allowed(padding: List[int], extra: List[int], stride: List[int], dilation: List[int]) -> bool:
    result = True
    for i in range(len(padding)):
        if padding[i] < 0 or extra[i] < 0 or (extra[i] >= stride[i] and extra[i] >= dilation[i]):
            result = False
    return result


def _transposed_pads(
    auto_pad: str,
    sizes: List[int],
    kernel: List[int],
    stride: List[int],
    dilation: List[int],
    extra: List[int],
    output_shape: Optional[List[int]],
) -> List[int]:
    n = len(kernel)
    pads = [0] * (2 * n)
    for i in range(n):
        wanted = sizes[i] * stride[i]
        if output_shape is not None:
            wanted = output_shape[i]
        total = stride[i] * (sizes[i] - 1) + extra[i] + (kernel[i] - 1) * dilation[i] + 1 - wanted
        if output_shape is None:
            total = max(total, 0)
        elif total <= -stride[i]:
            raise RuntimeError("output_shape is {}, which these windows do not reach".format(output_shape))
        less = total // 2
        pads[i] = less if auto_pad == "SAME_UPPER" else total - less
        pads[i + n] = total - less if auto_pad == "SAME_UPPER" else less
    return pads


def _conv_transpose(
    X: Tensor,
    W: Tensor,
    B: Optional[Tensor],
    stride: List[int],
    padding: List[int],
    extra: List[int],
    group: int,
    dilation: List[int],
) -> Tensor:
    n = len(stride)
    if n == 2:
        return torch.conv_transpose2d(X, W, B, stride, padding, extra, group, dilation)
    if n == 1:
        return torch.conv_transpose1d(X, W, B, stride, padding, extra, group, dilation)
    if n == 3:
        return torch.conv_transpose3d(X, W, B, stride, padding, extra, group, dilation)
    raise RuntimeError("convolutions over {} dimensions are not supported".format(n))


def CausalConvWithState_27(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    past_state: Optional[Tensor] = None,
    *,
    activation: str = "none",
) -> Tuple[Tensor, Tensor]:
    kept = weight.size(2) - 1
    if past_state is None:
        whole = torch.constant_pad_nd(input, [kept, 0])
    else:
        whole = torch.cat([past_state, input], 2)
    result = torch.conv1d(whole, weight, bias, groups=input.size(1))
    if activation == "silu" or activation == "swish":
        result = torch.silu(result)
    return result, torch.narrow(whole, 2, whole.size(2) - kept, kept)


# Columns of blocks, summed where they overlap.
def Col2Im_18(
    input: Tensor,
    image_shape: List[int],
    block_shape: List[int],
    *,
    dilations: Optional[List[int]] = None,
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
) -> Tensor:
    n = len(image_shape)
    stride = [1] * n if strides is None else strides
    dilation = [1] * n if dilations is None else dilations
    pad = [0] * (2 * n) if pads is None else pads
    _check_window(n, block_shape, strides, dilations, pads)
    batch = input.size(0)
    block = __torch__.onnx.shapes._product(block_shape)
    channels = input.size(1) // block
    padded: List[int] = []
    counts: List[int] = []
    for i in range(n):
        padded.append(image_shape[i] + pad[i] + pad[i + n])
        counts.append((padded[i] - dilation[i] * (block_shape[i] - 1) - 1) // stride[i] + 1)
    # Where each element of the columns goes in the padded image.
    place = torch.zeros([1] * (2 * n), dtype=torch.int64)
    for i in range(n):
        inner = [1] * (2 * n)
        inner[i] = block_shape[i]
        outer = [1] * (2 * n)
        outer[n + i] = counts[i]
        along = torch.arange(block_shape[i]).reshape(inner) * dilation[i]
        along = along + torch.arange(counts[i]).reshape(outer) * stride[i]
        place = place * padded[i] + along
    columns = input.reshape([batch, channels, -1])
    image = torch.zeros([batch, channels, __torch__.onnx.shapes._product(padded)], dtype=input.dtype)
    image = torch.index_add(image, 2, place.reshape([-1]), columns)
    image = image.reshape([batch, channels] + padded)
    for i in range(n):
        image = torch.narrow(image, 2 + i, pad[i], image_shape[i])
    return image


# ---- integers


def _zero_point_of_rows(zero_point: Tensor) -> Tensor:
    return torch.unsqueeze(zero_point, -1) if zero_point.dim() == 1 and zero_point.size(0) > 1 else zero_point


def MatMulInteger_10(
    A: Tensor, B: Tensor, a_zero_point: Optional[Tensor] = None, b_zero_point: Optional[Tensor] = None
) -> Tensor:
    if __torch__.onnx.control._at_load():
        _check_product(A, B)
    a = A.to(torch.int32)
    b = B.to(torch.int32)
    if a_zero_point is not None:
        a = a - _zero_point_of_rows(a_zero_point).to(torch.int32)
    if b_zero_point is not None:
        b = b - b_zero_point.to(torch.int32)
    return torch.matmul(a, b)


# Sums of products of 8-bit integers are exact in float64.
def ConvInteger_10(
    x: Tensor,
    w: Tensor,
    x_zero_point: Optional[Tensor] = None,
    w_zero_point: Optional[Tensor] = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Optional[List[int]] = None,
    group: int = 1,
    kernel_shape: Optional[List[int]] = None,
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
) -> Tensor:
    a = x.to(torch.float64)
    b = w.to(torch.float64)
    if x_zero_point is not None:
        a = a - x_zero_point.to(torch.float64)
    if w_zero_point is not None:
        zero = w_zero_point.to(torch.float64)
        b = b - (zero.reshape([-1] + [1] * (w.dim() - 1)) if zero.dim() == 1 else zero)
    result = Conv_1(
        a,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return result.to(torch.int32)
