# Random numbers: those of the run's generator. Seeds of the file are not followed: they are another generator's.


def RandomNormal_1(
    *, dtype: int = 6, mean: float = 0.0, scale: float = 1.0, seed: Optional[float] = None, shape: List[int]
) -> Tensor:
    return (torch.randn(shape, dtype=torch.float32) * scale + mean).to(dtype)


def RandomNormalLike_1(
    input: Tensor, *, dtype: Optional[int] = None, mean: float = 0.0, scale: float = 1.0, seed: Optional[float] = None
) -> Tensor:
    return RandomNormal_1(dtype=input.dtype if dtype is None else dtype, mean=mean, scale=scale, shape=input.shape)


def RandomUniform_1(
    *, dtype: int = 6, high: float = 1.0, low: float = 0.0, seed: Optional[float] = None, shape: List[int]
) -> Tensor:
    return (torch.rand(shape, dtype=torch.float32) * (high - low) + low).to(dtype)


def RandomUniformLike_1(
    input: Tensor, *, dtype: Optional[int] = None, high: float = 1.0, low: float = 0.0, seed: Optional[float] = None
) -> Tensor:
    return RandomUniform_1(dtype=input.dtype if dtype is None else dtype, high=high, low=low, shape=input.shape)


def Bernoulli_15(input: Tensor, *, dtype: Optional[int] = None, seed: Optional[float] = None) -> Tensor:
    drawn = torch.rand(input.shape, dtype=torch.float32) < input
    return drawn.to(input.dtype if dtype is None else dtype)


# `input` holds logarithms of weights.
def Multinomial_7(input: Tensor, *, dtype: int = 3, sample_size: int = 1, seed: Optional[float] = None) -> Tensor:
    return torch.multinomial(torch.softmax(input.to(torch.float32), 1), sample_size, True).to(dtype)
