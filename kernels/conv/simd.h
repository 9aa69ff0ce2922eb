#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/base/half_epilogue.h"

// The vector code of convolutions on plain pointers, each function built for every instruction set. Operands are in
// memory order N, H, W, C.
namespace tensord::kernels {

// The epilogue of each result after bias and sum: a clamp, and then functions in order.
struct ConvEpilogue {
  enum class Kind : uint8_t { kLeaky, kClip, kLinear, kSigmoid, kSilu, kHardSwish };
  struct Step {
    Kind kind;
    float alpha, beta;
  };
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  std::array<Step, 4> steps{};
  int count = 0;
};

// Results of a product computed at once: up to kTilePixels pixels in two groups, and one panel of channels.
// Panels are of conv_panel_width() channels; weights lie as [group][panel][tap][depth][panel width].
int64_t conv_panel_width();

// A convolution of one group of channels or several, over a source with its padding around it.
struct DirectConv {
  int64_t batch = 1, out_h = 1, out_w = 1, out_channels = 0;
  int64_t image_step = 0, row_step = 0, pixel_step = 0;  // floats in src from one output image, row, pixel to the next
  int64_t groups = 1, depth = 0;                         // depth: floats of src that a tap multiplies
  std::vector<int64_t> taps;                             // where they begin, from the pixel's first
  const float* weights = nullptr;
  const float* bias = nullptr;  // groups × panels × panel width
  ConvEpilogue finish;

  int64_t group_channels() const { return out_channels / groups; }
};

// Pixels in groups that a tile computes, each within one output row.
int64_t conv_pixel_groups(const DirectConv& conv);
int64_t conv_panels(const DirectConv& conv);  // of all groups of channels
// Computes these groups of pixels in these panels. `other` has the layout of dst, or is null, or is dst.
void run_direct_conv(const DirectConv& conv, const float* src, const float* other, float* dst,
                     std::array<int64_t, 2> pixels, std::array<int64_t, 2> panels);

// The weights of one group of channels as the archive has them: [out][in][taps], times `scale` (null: 1) of each out.
// Winograd's also those of a gradient's convolution: [in][out][taps], the last tap first.
struct ConvWeightSource {
  const float* data;
  const float* scale;
  int64_t out, in, taps;
  bool is_turned = false;

  int64_t panels() const { return (out + conv_panel_width() - 1) / conv_panel_width(); }
};
// Makes panels of rows [taps][in], with zeros in what fills up the last vector of channels. All panels together take
// conv_panel_floats.
int64_t conv_panel_floats(int64_t rows, int64_t columns);
void pack_conv_panels(const ConvWeightSource& source, float* to, int64_t first_panel, int64_t last_panel);

// Each channel by itself. Weights lie as [kernel_h][kernel_w][channels].
struct DepthwiseConv {
  int64_t in_h = 0, in_w = 0, out_h = 0, out_w = 0, channels = 0;
  int64_t kernel = 3, stride = 1, pad_h = 0, pad_w = 0;  // padding before; the kernel is square
  const float* weights = nullptr;
  const float* bias = nullptr;   // channels
  const float* zeros = nullptr;  // channels, stands for pixels outside of the image
  ConvEpilogue finish;
};
bool covers_depthwise(int64_t kernel, int64_t stride, int64_t channels);
// Rows are counted over all images.
void run_depthwise_conv(const DepthwiseConv& conv, const float* src, float* dst, int64_t first_row, int64_t last_row);
// In bfloat16. `steps` has no `other`; `conv.finish` is not used.
void run_depthwise_halves(const DepthwiseConv& conv, const HalfEpilogue& steps, const BFloat16* src, BFloat16* dst,
                          std::array<int64_t, 2> rows);

// By Winograd's algorithm: 3x3 kernel, stride 1. Channels are multiples of 16.
struct WinogradConv {
  int64_t in_h = 0, in_w = 0, out_h = 0, out_w = 0, in_channels = 0, out_channels = 0, pad_h = 0, pad_w = 0;
  int64_t tile = 4;                // outputs a side: 2 or 4
  const float* weights = nullptr;  // [(tile+2)²] times panels
  const float* bias = nullptr;     // out_channels
  const float* zeros = nullptr;    // in_channels
  ConvEpilogue finish;

  int64_t side() const { return tile + 2; }
  int64_t tiles_w() const { return (out_w + tile - 1) / tile; }
  int64_t tiles_h() const { return (out_h + tile - 1) / tile; }
  int64_t block_tiles() const;  // computed at once
  int64_t scratch_floats() const { return side() * side() * block_tiles() * (in_channels + out_channels); }
};
// Tiles are counted over all images; scratch holds scratch_floats().
void run_winograd_conv(const WinogradConv& conv, const float* src, const float* other, float* dst, float* scratch,
                       int64_t first_tile, int64_t last_tile);
// Makes panels of the transformed 3x3 kernels for each position of a tile, one position after the other.
void pack_winograd_panels(int64_t tile, const ConvWeightSource& source, float* to, int64_t first_panel,
                          int64_t last_panel);

// The gradient for the 3x3 kernels of stride 1 by the same algorithm, tiles of 4 by 4: inputs and gradients of a block
// of tiles are transformed, and their products are summed over all tiles at each of the 36 positions.
struct WinogradSums {
  WinogradConv conv;      // tile 4; its zeros serve inputs and gradients
  int64_t tiles = 0;      // of the block
  int64_t grad_step = 0;  // floats from pixel to pixel of grad, which may have more channels than conv

  static constexpr int64_t kPositions = 36;
  int64_t input_floats() const { return kPositions * tiles * conv.in_channels; }
  int64_t gradient_floats() const { return kPositions * tiles * conv.out_channels; }
  int64_t sum_floats() const { return kPositions * conv.in_channels * conv.out_channels; }
};
// Tiles first + [begin, end) of src and grad to inputs, [position][tile][in], and gradients, [position][tile][out].
void transform_winograd_sums(const WinogradSums& sums, const float* src, const float* grad, int64_t first,
                             int64_t begin, int64_t end, float* inputs, float* gradients);
// to[position][in][out] = or += products over `count` tiles, for positions [begin, end).
void add_winograd_sums(const WinogradSums& sums, const float* inputs, const float* gradients, int64_t count,
                       bool accumulates, int64_t begin, int64_t end, float* to);
// Kernels of inputs [begin, end) from the sums: out[o * out_step + i * in_step + tap * tap_step].
void finish_winograd_sums(const WinogradSums& sums, const float* from, int64_t begin, int64_t end, float* out,
                          int64_t out_step, int64_t in_step, int64_t tap_step);

// Copies an image in planes or pixels to pixels `pixel_step` floats apart, with zeros around it; of the source every
// `stride`-th row and pixel.
struct PadCopy {
  int64_t channels = 0, in_h = 0, in_w = 0, pad_h = 0, pad_w = 0;
  int64_t out_h = 0, out_w = 0;  // with the padding
  int64_t pixel_step = 0, stride = 1;
  bool from_planes = false;

  // Columns of zeros before the image and of the image; the padded row may end within the former.
  int64_t left_w() const { return std::min(pad_w, out_w); }
  int64_t used_w() const { return std::min((in_w + stride - 1) / stride, out_w - left_w()); }
};
// One image; rows of the padded image.
void run_pad_copy(const PadCopy& copy, const float* src, float* dst, int64_t first_row, int64_t last_row);

}  // namespace tensord::kernels
