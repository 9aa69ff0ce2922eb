// Convolution as products of pixels and panels of weights, straight from the source: a tile of 14 pixels by 32
// channels stays in registers over all taps. Blocks of pixels stay in the L2 cache while all panels pass.
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv_direct_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/conv_simd.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

#include "kernels/conv_tile-inl.h"

constexpr int64_t kPanel = kTileVectors * kLanes;

int64_t PanelWidth() { return kPanel; }
int64_t RowGroups(int64_t width) { return (width + kGroupPixels - 1) / kGroupPixels; }

int64_t PanelFloats(int64_t rows, int64_t columns) { return rows * ((columns + kLanes - 1) / kLanes * kLanes); }

// A few input channels at a time, so that what is written stays in the cache until it is whole.
void PackPanels(const ConvWeightSource& source, float* to, int64_t first_panel, int64_t last_panel) {
  constexpr int64_t kBlock = 16;
  const int64_t in = source.in, taps = source.taps;
  for (int64_t first = first_panel * kPanel; first < std::min(source.out, last_panel * kPanel); first += kPanel) {
    const int64_t count = std::min(kPanel, source.out - first), width = count <= kLanes ? kLanes : kPanel;
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

// Where one group of pixels is.
struct PixelGroup {
  const float* src;
  int64_t at;  // first pixel in the output
  int64_t pixels;
};

PixelGroup FindGroup(const DirectConv& conv, const float* src, int64_t index, int64_t row_groups) {
  const int64_t row = index / row_groups, column = index % row_groups * kGroupPixels;
  const int64_t image = row / conv.out_h, line = row % conv.out_h;
  return {src + image * conv.image_step + line * conv.row_step + column * conv.pixel_step, row * conv.out_w + column,
          std::min<int64_t>(kGroupPixels, conv.out_w - column)};
}

void RunPanel(const DirectConv& conv, const float* src, const float* other, float* dst, int64_t begin, int64_t end,
              int64_t panel) {
  const int64_t group_channels = conv.group_channels(), group_panels = (group_channels + kPanel - 1) / kPanel;
  const int64_t group = panel / group_panels, first = panel % group_panels * kPanel;
  const int64_t rows = static_cast<int64_t>(conv.taps.size()) * conv.depth, row_groups = RowGroups(conv.out_w);
  const int64_t channel = group * group_channels + first;
  TileRun run{};
  run.taps = conv.taps.data();
  run.tap_count = static_cast<int64_t>(conv.taps.size());
  run.depth = conv.depth;
  run.a_step = conv.pixel_step;
  run.b = conv.weights + group * PanelFloats(rows, group_channels) + first * rows;
  run.bias = conv.bias + panel * kPanel;
  run.c_step = conv.out_channels;
  run.columns = std::min(kPanel, group_channels - first);
  run.low = conv.finish.low;
  run.high = conv.finish.high;
  const bool is_narrow = run.columns <= kLanes;
  const auto place = [&](int slot, const PixelGroup& at) {
    run.a[slot] = at.src + group * conv.depth;
    run.c[slot] = dst + at.at * conv.out_channels + channel;
    run.other[slot] = other ? other + at.at * conv.out_channels + channel : nullptr;
  };
  for (int64_t i = begin; i < end;) {
    const PixelGroup one = FindGroup(conv, src, i++, row_groups);
    place(0, one);
    bool is_pair = false;
    if (one.pixels == kGroupPixels && i < end) {
      const PixelGroup two = FindGroup(conv, src, i, row_groups);
      is_pair = two.pixels == kGroupPixels;
      if (is_pair) place(1, two), ++i;
    }
    run_tile(is_pair, one.pixels, run, is_narrow);
    if (conv.finish.count == 0) continue;
    finish_block(conv.finish, run.c[0], one.pixels, run.c_step, run.columns);
    if (is_pair) finish_block(conv.finish, run.c[1], one.pixels, run.c_step, run.columns);
  }
}

// Pixel groups whose source stays in the L2 cache while panels pass. Where all panels fit there too, one tile of
// pixels goes through them all, so that results are written in whole rows.
int64_t BlockGroups(const DirectConv& conv) {
  constexpr int64_t kSourceBytes = 192 * 1024, kPanelBytes = 128 * 1024;
  const int64_t rows = static_cast<int64_t>(conv.taps.size()) * conv.depth;
  if (conv.out_channels * rows * static_cast<int64_t>(sizeof(float)) <= kPanelBytes) return 2;
  const int64_t row_floats = conv.out_h > 1 ? conv.row_step : conv.pixel_step * conv.out_w;
  const int64_t group_bytes = row_floats * static_cast<int64_t>(sizeof(float)) / RowGroups(conv.out_w);
  return std::max<int64_t>(2, kSourceBytes / std::max<int64_t>(group_bytes, 1) / 2 * 2);
}

void RunDirect(const DirectConv& conv, const float* src, const float* other, float* dst, std::array<int64_t, 2> pixels,
               std::array<int64_t, 2> panels) {
  const int64_t block = BlockGroups(conv);
  for (int64_t begin = pixels[0]; begin < pixels[1]; begin += block) {
    const int64_t end = std::min(pixels[1], begin + block);
    for (int64_t panel = panels[0]; panel < panels[1]; ++panel) RunPanel(conv, src, other, dst, begin, end, panel);
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
  const int64_t step = copy.pixel_step, used = copy.used_w();
  for (int64_t y = first_row; y < last_row; ++y) {
    float* to = dst + y * copy.out_w * step;
    const int64_t row = (y - copy.pad_h) * copy.stride;
    if (row < 0 || row >= copy.in_h) {
      std::fill(to, to + copy.out_w * step, 0.0f);
      continue;
    }
    std::fill(to, to + copy.pad_w * step, 0.0f);
    to += copy.pad_w * step;
    std::fill(to + used * step, to + (copy.out_w - copy.pad_w) * step, 0.0f);
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
