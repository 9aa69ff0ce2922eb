// Included inside HWY_NAMESPACE where D, V and kLanes are f32 vectors: the transforms of Winograd's convolution that
// its results and the gradients for its kernels share.

// One line of the transforms; x are every kStep-th of the vectors.
template <int kTile>
struct Lines;

// Evaluated at 0, ±√½, ±√2 and infinity: a quarter of the error of the usual 0, ±1, ±2.
constexpr float kNear = 0.70710678f, kFar = 1.41421356f;

// What a line of a kernel gives at each point.
constexpr float kKernelFour[6][3] = {{1, 0, 0},
                                     {-2.0f / 3, -2.0f / 3 * kNear, -1.0f / 3},
                                     {-2.0f / 3, 2.0f / 3 * kNear, -1.0f / 3},
                                     {1.0f / 6, kFar / 6, 1.0f / 3},
                                     {1.0f / 6, -kFar / 6, 1.0f / 3},
                                     {0, 0, 1}};

template <>
struct Lines<4> {
  static HWY_INLINE void input(const V (&x)[6], V (&y)[6]) {
    const D d;
    const V two = hn::Set(d, 2.0f), half = hn::Set(d, 0.5f), both = hn::Set(d, 2.5f);
    y[0] = hn::NegMulAdd(both, x[2], hn::Add(x[0], x[4]));
    const V a = hn::NegMulAdd(two, x[2], x[4]), b = hn::NegMulAdd(two, x[1], x[3]);
    y[1] = hn::MulAdd(hn::Set(d, kNear), b, a);
    y[2] = hn::NegMulAdd(hn::Set(d, kNear), b, a);
    const V c = hn::NegMulAdd(half, x[2], x[4]), e = hn::NegMulAdd(half, x[1], x[3]);
    y[3] = hn::MulAdd(hn::Set(d, kFar), e, c);
    y[4] = hn::NegMulAdd(hn::Set(d, kFar), e, c);
    y[5] = hn::NegMulAdd(both, x[3], hn::Add(x[1], x[5]));
  }
  static HWY_INLINE void output(const V (&x)[6], V (&y)[4]) {
    const D d;
    const V a = hn::Add(x[1], x[2]), b = hn::Sub(x[1], x[2]), c = hn::Add(x[3], x[4]), e = hn::Sub(x[3], x[4]);
    y[0] = hn::Add(x[0], hn::Add(a, c));
    y[1] = hn::MulAdd(hn::Set(d, kFar), e, hn::Mul(hn::Set(d, kNear), b));
    y[2] = hn::MulAdd(hn::Set(d, 2.0f), c, hn::Mul(hn::Set(d, 0.5f), a));
    y[3] = hn::MulAdd(hn::Set(d, 2 * kFar), e, hn::MulAdd(hn::Set(d, kNear / 2), b, x[5]));
  }
};

template <>
struct Lines<2> {
  static HWY_INLINE void input(const V (&x)[4], V (&y)[4]) {
    y[0] = hn::Sub(x[0], x[2]);
    y[1] = hn::Add(x[1], x[2]);
    y[2] = hn::Sub(x[2], x[1]);
    y[3] = hn::Sub(x[1], x[3]);
  }
  static HWY_INLINE void output(const V (&x)[4], V (&y)[2]) {
    y[0] = hn::Add(x[0], hn::Add(x[1], x[2]));
    y[1] = hn::Sub(hn::Sub(x[1], x[2]), x[3]);
  }
};

// The transposed of `output`: what of a line of gradients goes to each point.
HWY_INLINE void line_of_gradients(const V (&x)[4], V (&y)[6]) {
  const D d;
  const V a = hn::MulAdd(hn::Set(d, 0.5f), x[2], x[0]), c = hn::MulAdd(hn::Set(d, 2.0f), x[2], x[0]);
  const V b = hn::MulAdd(hn::Set(d, kNear / 2), x[3], hn::Mul(hn::Set(d, kNear), x[1])),
          e = hn::MulAdd(hn::Set(d, 2 * kFar), x[3], hn::Mul(hn::Set(d, kFar), x[1]));
  y[0] = x[0];
  y[1] = hn::Add(a, b);
  y[2] = hn::Sub(a, b);
  y[3] = hn::Add(c, e);
  y[4] = hn::Sub(c, e);
  y[5] = x[3];
}

struct TilePlace {
  int64_t image, y, x;  // first output pixel
};

TilePlace FindTile(const WinogradConv& conv, int64_t index) {
  const int64_t per_image = conv.tiles_h() * conv.tiles_w(), inner = index % per_image;
  return {index / per_image, inner / conv.tiles_w() * conv.tile, inner % conv.tiles_w() * conv.tile};
}

// The tile's inputs to `to`, positions `step` floats apart.
template <int kTile>
void TransformInput(const WinogradConv& conv, const float* src, const TilePlace& at, float* to, int64_t step) {
  constexpr int kSide = kTile + 2;
  const D d;
  const int64_t channels = conv.in_channels;
  const float* pixels[kSide][kSide];
  for (int i = 0; i < kSide; ++i) {
    const int64_t y = at.y + i - conv.pad_h;
    for (int j = 0; j < kSide; ++j) {
      const int64_t x = at.x + j - conv.pad_w;
      const bool is_inside = y >= 0 && y < conv.in_h && x >= 0 && x < conv.in_w;
      pixels[i][j] = is_inside ? src + ((at.image * conv.in_h + y) * conv.in_w + x) * channels : conv.zeros;
    }
  }
  for (int64_t c = 0; c < channels; c += kLanes) {
    V columns[kSide][kSide];
#pragma GCC unroll 6
    for (int j = 0; j < kSide; ++j) {
      V x[kSide], y[kSide];
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) x[i] = hn::LoadU(d, pixels[i][j] + c);
      Lines<kTile>::input(x, y);
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) columns[i][j] = y[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < kSide; ++i) {
      V y[kSide];
      Lines<kTile>::input(columns[i], y);
#pragma GCC unroll 6
      for (int j = 0; j < kSide; ++j) hn::StoreU(y[j], d, to + (i * kSide + j) * step + c);
    }
  }
}
