// Convolution as products of pixels and panels of weights, straight from the source: a tile of 14 pixels by 32
// channels stays in registers over all taps. Blocks of pixels stay in the L2 cache while all panels pass.
#include "core/base/cancellation.h"
#include "kernels/base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/direct_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/conv/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

#include "kernels/conv/tile-inl.h"

constexpr int64_t kPanel = kTileVectors * kLanes;

int64_t PanelWidth() { return kPanel; }
int64_t RowGroups(int64_t width) { return (width + kGroupPixels - 1) / kGroupPixels; }

int64_t PanelFloats(int64_t rows, int64_t columns) {
  const int64_t rest = columns % kPanel;
  return rows * (columns - rest + (rest > 0 ? panel_width(rest) : 0));
}

// A few input channels at a time, so that the part being written stays in the cache until it is complete.
void PackPanels(const ConvWeightSource& source, float* to, int64_t first_panel, int64_t last_panel) {
  constexpr int64_t kBlock = 16;
  const int64_t in = source.in, taps = source.taps;
  for (int64_t first = first_panel * kPanel; first < std::min(source.out, last_panel * kPanel); first += kPanel) {
    const int64_t count = std::min(kPanel, source.out - first), width = panel_width(count);
    float* const panel = to + first * in * taps;
    if (count < width) std::fill(panel, panel + width * in * taps, 0.0f);
    for (int64_t begin = 0; begin < in; begin += kBlock) {
      const int64_t end = std::min(in, begin + kBlock);
      for (int64_t n = 0; n < count; ++n) {
        const float by = source.scale ? source.scale[first + n] : 1.0f;
        const float* from = source.data + ((first + n) * in + begin) * taps;
        for (int64_t c = begin; c < end; ++c) {
          for (int64_t t = 0; t < taps; ++t) panel[(t * in + c) * width + n] = *from++ * by;
        }
      }
    }
  }
}

// Walks over groups of pixels.
class PixelCursor {
 public:
  PixelCursor(const DirectConv& conv, const float* src, int64_t index) : conv_(conv) {
    const int64_t row_groups = RowGroups(conv.out_w), row = index / row_groups;
    column_ = index % row_groups * kGroupPixels;
    line_ = row % conv.out_h;
    row_ = row;
    image_ = src + row / conv.out_h * conv.image_step;
  }
  const float* source() const { return image_ + line_ * conv_.row_step + column_ * conv_.pixel_step; }
  int64_t first() const { return row_ * conv_.out_w + column_; }  // of the output's pixels
  int64_t pixels() const { return std::min<int64_t>(kGroupPixels, conv_.out_w - column_); }
  void advance() {
    column_ += kGroupPixels;
    if (column_ < conv_.out_w) return;
    column_ = 0;
    ++row_;
    if (++line_ < conv_.out_h) return;
    line_ = 0;
    image_ += conv_.image_step;
  }

 private:
  const DirectConv& conv_;
  const float* image_;
  int64_t row_, line_, column_;
};

// What all tiles of a panel have in common.
struct Panel {
  const float *weights, *bias;
  int64_t source_channel, channel, columns;
};

Panel FindPanel(const DirectConv& conv, int64_t panel) {
  const int64_t rows = static_cast<int64_t>(conv.taps.size()) * conv.depth, columns = conv.group_channels();
  int64_t group = 0, in_group = panel;
  if (conv.groups > 1) {
    const int64_t group_panels = (columns + kPanel - 1) / kPanel;
    group = panel / group_panels;
    in_group = panel % group_panels;
  }
  const int64_t first = in_group * kPanel;
  return {conv.weights + group * PanelFloats(rows, columns) + first * rows, conv.bias + panel * kPanel,
          group * conv.depth, group * columns + first, std::min(kPanel, columns - first)};
}

void RunTiles(const DirectConv& conv, const float* src, const float* other, float* dst, std::array<int64_t, 2> pixels,
              std::array<int64_t, 2> panels) {
  TileRun run{};
  run.taps = conv.taps.data();
  run.tap_count = static_cast<int64_t>(conv.taps.size());
  run.depth = conv.depth;
  run.a_step = conv.pixel_step;
  run.c_step = conv.out_channels;
  run.low = conv.finish.low;
  run.high = conv.finish.high;
  // Results of a whole pixel are contiguous.
  const bool is_whole = panels[0] == 0 && panels[1] == conv.groups * ((conv.group_channels() + kPanel - 1) / kPanel);
  PixelCursor cursor(conv, src, pixels[0]);
  for (int64_t i = pixels[0]; i < pixels[1];) {
    const float* sources[2] = {cursor.source(), nullptr};
    int64_t firsts[2] = {cursor.first(), 0};
    const int64_t count = cursor.pixels();
    const bool is_first = i == pixels[0];
    cursor.advance(), ++i;
    const bool is_pair = count == kGroupPixels && i < pixels[1] && cursor.pixels() == kGroupPixels;
    if (is_pair) {
      sources[1] = cursor.source();
      firsts[1] = cursor.first();
      cursor.advance(), ++i;
    }
    for (int64_t p = panels[0]; p < panels[1]; ++p) {
      const Panel panel = FindPanel(conv, p);
      run.b = panel.weights;
      run.bias = panel.bias;
      // The first tile of a panel prefetches the next panel.
      run.ahead = is_first ? kPanel * run.depth * run.tap_count : 0;
      run.columns = panel.columns;
      for (int g = 0; g < (is_pair ? 2 : 1); ++g) {
        const int64_t to = firsts[g] * conv.out_channels + panel.channel;
        run.a[g] = sources[g] + panel.source_channel;
        run.c[g] = dst + to;
        run.other[g] = other ? other + to : nullptr;
      }
      run_tile(is_pair, count, run);
      if (conv.finish.count == 0 || is_whole) continue;
      for (int g = 0; g < (is_pair ? 2 : 1); ++g) finish_block(conv.finish, run.c[g], count, run.c_step, run.columns);
    }
    if (conv.finish.count == 0 || !is_whole) continue;
    for (int g = 0; g < (is_pair ? 2 : 1); ++g)
      finish_block(conv.finish, dst + firsts[g] * conv.out_channels, 1, 0, count * conv.out_channels);
  }
}

// If all panels fit into the L2 cache, each tile of pixels goes through all of them, so that whole result rows are
// written. Otherwise a panel is used for as many pixels as fit into that cache.
void RunDirect(const DirectConv& conv, const float* src, const float* other, float* dst, std::array<int64_t, 2> pixels,
               std::array<int64_t, 2> panels) {
  constexpr int64_t kSourceFloats = 48 * 1024, kPanelFloats = 32 * 1024;
  const int64_t rows = static_cast<int64_t>(conv.taps.size()) * conv.depth;
  if (conv.out_channels * rows <= kPanelFloats) return RunTiles(conv, src, other, dst, pixels, panels);
  const int64_t row_floats = conv.out_h > 1 ? conv.row_step : conv.pixel_step * conv.out_w;
  const int64_t group_floats = std::max<int64_t>(1, row_floats / RowGroups(conv.out_w));
  const int64_t block = std::max<int64_t>(2, kSourceFloats / group_floats / 2 * 2);
  for (int64_t begin = pixels[0]; begin < pixels[1]; begin += block) {
    check_work_cancelled();
    for (int64_t panel = panels[0]; panel < panels[1]; ++panel)
      RunTiles(conv, src, other, dst, {begin, std::min(pixels[1], begin + block)}, {panel, panel + 1});
  }
}

void CopyPixels(const PadCopy& copy, const float* from, float* to, int64_t count) {
  const int64_t channels = copy.channels, step = copy.pixel_step;
  if (copy.from_planes) {
    const D d;
    const int64_t plane = copy.in_h * copy.in_w;
    int64_t x = 0;
    if (channels == 3 && step == 3 && copy.stride == 1) {
      for (; x + kLanes <= count; x += kLanes)
        hn::StoreInterleaved3(hn::LoadU(d, from + x), hn::LoadU(d, from + plane + x),
                              hn::LoadU(d, from + 2 * plane + x), d, to + x * 3);
    }
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = x; i < count; ++i) to[i * step + c] = from[c * plane + i * copy.stride];
    }
  } else if (step == channels && copy.stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count * channels) * sizeof(float));
  } else {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * step, from + i * copy.stride * channels, static_cast<size_t>(channels) * sizeof(float));
  }
}

void PadCopyRows(const PadCopy& copy, const float* src, float* dst, int64_t first_row, int64_t last_row) {
  const int64_t step = copy.pixel_step, left = copy.left_w(), used = copy.used_w();
  for (int64_t y = first_row; y < last_row; ++y) {
    float* to = dst + y * copy.out_w * step;
    const int64_t row = (y - copy.pad_h) * copy.stride;
    if (row < 0 || row >= copy.in_h) {
      std::fill(to, to + copy.out_w * step, 0.0f);
      continue;
    }
    std::fill(to, to + left * step, 0.0f);
    to += left * step;
    std::fill(to + used * step, to + (copy.out_w - left) * step, 0.0f);
    CopyPixels(copy, src + row * copy.in_w * (copy.from_planes ? 1 : copy.channels), to, used);
  }
}

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(PanelWidth);
HWY_EXPORT(RowGroups);
HWY_EXPORT(PanelFloats);
HWY_EXPORT(PackPanels);
HWY_EXPORT(RunDirect);
HWY_EXPORT(PadCopyRows);

int64_t conv_panel_width() { return HWY_DYNAMIC_DISPATCH(PanelWidth)(); }

int64_t conv_pixel_groups(const DirectConv& conv) {
  return conv.batch * conv.out_h * HWY_DYNAMIC_DISPATCH(RowGroups)(conv.out_w);
}

int64_t conv_panels(const DirectConv& conv) {
  const int64_t width = conv_panel_width();
  return conv.groups * ((conv.group_channels() + width - 1) / width);
}

int64_t conv_panel_floats(int64_t rows, int64_t columns) { return HWY_DYNAMIC_DISPATCH(PanelFloats)(rows, columns); }

void pack_conv_panels(const ConvWeightSource& source, float* to, int64_t first_panel, int64_t last_panel) {
  HWY_DYNAMIC_DISPATCH(PackPanels)(source, to, first_panel, last_panel);
}

void run_direct_conv(const DirectConv& conv, const float* src, const float* other, float* dst,
                     std::array<int64_t, 2> pixels, std::array<int64_t, 2> panels) {
  HWY_DYNAMIC_DISPATCH(RunDirect)(conv, src, other, dst, pixels, panels);
}

void run_pad_copy(const PadCopy& copy, const float* src, float* dst, int64_t first_row, int64_t last_row) {
  HWY_DYNAMIC_DISPATCH(PadCopyRows)(copy, src, dst, first_row, last_row);
}

}  // namespace tensord::kernels
#endif
