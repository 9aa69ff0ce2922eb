// The loops of the operators on boxes. Threads share the channels, so they never add to the same pixel.
#include "kernels/detection/regions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/parallel.h"

namespace tensord::kernels {
namespace {

// The most samples along one side of a box. A box that asks for more is not a box of an image; without a bound its
// corners alone would determine how long the call takes.
constexpr double kMaxSamples = 1 << 18;

template <class T>
struct Box {
  int64_t image;
  T x1, y1, x2, y2;
};

template <class T>
std::vector<Box<T>> read_boxes(const Tensor& boxes, int64_t images) {
  std::vector<Box<T>> out(static_cast<size_t>(boxes.size(0)));
  const T* row = boxes.data<T>();
  for (Box<T>& box : out) {
    check(row[0] > -1 && row[0] < static_cast<T>(images), "rois: there is no image ", row[0], " in a batch of ",
          images);
    for (int i = 1; i < 5; ++i) check(std::isfinite(row[i]), "rois: the corners of a box must be finite");
    box = {static_cast<int64_t>(row[0]), row[1], row[2], row[3], row[4]};
    row += 5;
  }
  return out;
}

// The two pixels that a sample reads along one side, and their weights.
template <class T>
struct Tap {
  int64_t low = -1, high = -1;  // -1: outside of the image
  T of_low = 0, of_high = 0;
};

template <class T>
Tap<T> tap_at(T at, int64_t size) {
  if (!(at >= -1 && at <= static_cast<T>(size))) return {};
  at = std::max(at, T(0));
  auto low = static_cast<int64_t>(at);
  int64_t high = low + 1;
  if (low >= size - 1) {
    low = high = size - 1;
    at = static_cast<T>(low);
  }
  const T of_high = at - static_cast<T>(low);
  return {low, high, 1 - of_high, of_high};
}

// The samples of a box along one side: for each bin, those that are inside of the image.
template <class T>
struct Side {
  int64_t wanted = 0;         // of a bin; below 0 where the box ends before it begins
  std::vector<size_t> first;  // bin b has taps first[b] … first[b + 1] - 1
  std::vector<Tap<T>> taps;

  Side(T start, T length, int64_t bins, const RegionGrid& grid, int64_t size) {
    const T bin = length / static_cast<T>(bins);
    const double each = grid.samples > 0 ? static_cast<double>(grid.samples) : std::ceil(static_cast<double>(bin));
    check(std::abs(each) * static_cast<double>(bins) <= kMaxSamples, "rois: a side of ", length, " pixels in ", bins,
          " bins needs more than ", static_cast<int64_t>(kMaxSamples), " samples");
    wanted = static_cast<int64_t>(each);
    first.push_back(0);
    for (int64_t b = 0; b < bins; ++b) {
      for (int64_t i = 0; i < wanted; ++i) {
        const T offset = (static_cast<T>(i) + T(0.5)) * bin / static_cast<T>(wanted);
        const Tap<T> tap = tap_at(start + static_cast<T>(b) * bin + offset, size);
        if (tap.low >= 0) taps.push_back(tap);
      }
      first.push_back(taps.size());
    }
  }
};

template <class T>
struct Samples {
  Side<T> y, x;

  Samples(const Box<T>& box, const RegionGrid& grid, int64_t height, int64_t width)
      : y(start(box.y1, grid), length(box.y1, box.y2, grid), grid.height, grid, height),
        x(start(box.x1, grid), length(box.x1, box.x2, grid), grid.width, grid, width) {}

  static T start(T low, const RegionGrid& grid) {
    return low * static_cast<T>(grid.scale) - (grid.is_aligned ? T(0.5) : T(0));
  }
  // Boxes without `aligned` are at least one pixel wide.
  static T length(T low, T high, const RegionGrid& grid) {
    const T side = start(high, grid) - start(low, grid);
    return grid.is_aligned ? side : std::max(side, T(1));
  }
  T count(const RegionGrid& grid) const {
    const auto n = static_cast<T>(y.wanted * x.wanted);
    return grid.is_position_sensitive ? n : std::max(n, T(1));
  }
};

// Calls sum(four places, their weights) for each sample of bin (row, column) that lies in the image.
template <class T, class Sum>
void visit_samples(const Samples<T>& samples, int64_t row, int64_t column, int64_t width, Sum&& sum) {
  const auto range = [](const Side<T>& side, int64_t bin) {
    const auto b = static_cast<size_t>(bin);
    return std::span(side.taps).subspan(side.first[b], side.first[b + 1] - side.first[b]);
  };
  for (const Tap<T>& y : range(samples.y, row)) {
    for (const Tap<T>& x : range(samples.x, column)) {
      sum(y.low * width + x.low, y.low * width + x.high, y.high * width + x.low, y.high * width + x.high,
          y.of_low * x.of_low, y.of_low * x.of_high, y.of_high * x.of_low, y.of_high * x.of_high);
    }
  }
}

struct Layout {
  int64_t channels, height, width, out_channels, bins;
  Layout(const RegionGrid& grid, const Tensor& image, const Tensor& out)
      : channels(image.size(1)),
        height(image.size(2)),
        width(image.size(3)),
        out_channels(out.size(1)),
        bins(grid.height * grid.width) {}
  // The plane of the image that bin `bin` of the result's channel `c` reads.
  int64_t plane(const RegionGrid& grid, int64_t image, int64_t c, int64_t bin) const {
    return (image * channels + (grid.is_position_sensitive ? c * bins + bin : c)) * height * width;
  }
};

// Calls work(box, first channel, last channel) so that each channel of the result belongs to one thread.
template <class Work>
void by_channels(const Layout& layout, Work&& work) {
  parallel_for(layout.out_channels, std::max<int64_t>(1, 1024 / std::max<int64_t>(layout.bins, 1)), work);
}

template <class T>
void means(const RegionGrid& grid, const Tensor& image, const Tensor& boxes, const Tensor& out) {
  const Layout layout(grid, image, out);
  const std::vector<Box<T>> all = read_boxes<T>(boxes, image.size(0));
  for (size_t k = 0; k < all.size(); ++k) {
    check_work_cancelled();
    const Samples<T> samples(all[k], grid, layout.height, layout.width);
    const T count = samples.count(grid);
    by_channels(layout, [&](int64_t first, int64_t last) {
      for (int64_t c = first; c < last; ++c) {
        T* result = out.data<T>() + (static_cast<int64_t>(k) * layout.out_channels + c) * layout.bins;
        for (int64_t bin = 0; bin < layout.bins; ++bin) {
          const T* plane = image.data<T>() + layout.plane(grid, all[k].image, c, bin);
          T sum = 0;
          visit_samples(samples, bin / grid.width, bin % grid.width, layout.width,
                        [&](int64_t a, int64_t b, int64_t d, int64_t e, T of_a, T of_b, T of_d, T of_e) {
                          sum += of_a * plane[a] + of_b * plane[b] + of_d * plane[d] + of_e * plane[e];
                        });
          result[bin] = sum / count;
        }
      }
    });
  }
}

template <class T>
void means_backward(const RegionGrid& grid, const Tensor& grad, const Tensor& boxes, const Tensor& of_image) {
  const Layout layout(grid, of_image, grad);
  const std::vector<Box<T>> all = read_boxes<T>(boxes, of_image.size(0));
  for (size_t k = 0; k < all.size(); ++k) {
    check_work_cancelled();
    const Samples<T> samples(all[k], grid, layout.height, layout.width);
    const T count = samples.count(grid);
    by_channels(layout, [&](int64_t first, int64_t last) {
      for (int64_t c = first; c < last; ++c) {
        const T* g = grad.data<T>() + (static_cast<int64_t>(k) * layout.out_channels + c) * layout.bins;
        for (int64_t bin = 0; bin < layout.bins; ++bin) {
          T* plane = of_image.data<T>() + layout.plane(grid, all[k].image, c, bin);
          visit_samples(samples, bin / grid.width, bin % grid.width, layout.width,
                        [&](int64_t a, int64_t b, int64_t d, int64_t e, T of_a, T of_b, T of_d, T of_e) {
                          plane[a] += g[bin] * of_a / count;
                          plane[b] += g[bin] * of_b / count;
                          plane[d] += g[bin] * of_d / count;
                          plane[e] += g[bin] * of_e / count;
                        });
        }
      }
    });
  }
}

// Rounded corners, limited to the size that a plane can have.
template <class T>
int64_t rounded(T at, const RegionGrid& grid) {
  constexpr T kFar = T(1 << 30);
  return static_cast<int64_t>(std::round(std::clamp(at * static_cast<T>(grid.scale), -kFar, kFar)));
}

struct Range {
  int64_t begin, end;
};

// The pixels of bin `index` along a side that begins at `start` and is `length` pixels long; empty from `size` on.
template <class T>
Range pixels_of(int64_t index, int64_t start, int64_t length, int64_t bins, int64_t size) {
  const T bin = static_cast<T>(length) / static_cast<T>(bins);
  const auto at = [&](T position) { return std::clamp<int64_t>(static_cast<int64_t>(position) + start, 0, size); };
  return {at(std::floor(static_cast<T>(index) * bin)), at(std::ceil(static_cast<T>(index + 1) * bin))};
}

// Calls visit(box, channel, bin, rows, columns, plane) for every bin. roi_pool includes a box's last pixel; the
// position-sensitive operator excludes it.
template <class T, class Visit>
void visit_bins(const RegionGrid& grid, const Layout& layout, const Tensor& boxes, int64_t images, Visit&& visit) {
  const std::vector<Box<T>> all = read_boxes<T>(boxes, images);
  const int64_t last_pixel = grid.is_position_sensitive ? 0 : 1;
  for (size_t k = 0; k < all.size(); ++k) {
    check_work_cancelled();
    const int64_t x = rounded(all[k].x1, grid), y = rounded(all[k].y1, grid);
    const int64_t width = std::max<int64_t>(rounded(all[k].x2, grid) - x + last_pixel, 1);
    const int64_t height = std::max<int64_t>(rounded(all[k].y2, grid) - y + last_pixel, 1);
    by_channels(layout, [&](int64_t first, int64_t last) {
      for (int64_t c = first; c < last; ++c) {
        for (int64_t bin = 0; bin < layout.bins; ++bin) {
          const Range rows = pixels_of<T>(bin / grid.width, y, height, grid.height, layout.height - 1 + last_pixel);
          const Range columns = pixels_of<T>(bin % grid.width, x, width, grid.width, layout.width - 1 + last_pixel);
          const int64_t at = (static_cast<int64_t>(k) * layout.out_channels + c) * layout.bins + bin;
          visit(at, rows, columns, layout.plane(grid, all[k].image, c, bin));
        }
      }
    });
  }
}

template <class T>
void maxima(const RegionGrid& grid, const Tensor& image, const Tensor& boxes, const Tensor& out, const Tensor& places) {
  const Layout layout(grid, image, out);
  visit_bins<T>(grid, layout, boxes, image.size(0), [&](int64_t at, Range rows, Range columns, int64_t plane) {
    const bool is_empty = rows.end <= rows.begin || columns.end <= columns.begin;
    T largest = is_empty ? T(0) : static_cast<T>(-std::numeric_limits<float>::max());
    int64_t place = -1;
    const T* pixels = image.data<T>() + plane;
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const int64_t pixel = y * layout.width + x;
        if (pixels[pixel] > largest) {
          largest = pixels[pixel];
          place = pixel;
        }
      }
    }
    out.data<T>()[at] = largest;
    places.data<int32_t>()[at] = static_cast<int32_t>(place);
  });
}

template <class T>
void maxima_backward(const RegionGrid& grid, const Tensor& grad, const Tensor& boxes, const Tensor& places,
                     const Tensor& of_image) {
  const Layout layout(grid, of_image, grad);
  visit_bins<T>(grid, layout, boxes, of_image.size(0), [&](int64_t at, Range, Range, int64_t plane) {
    const int64_t place = places.data<int32_t>()[at];
    if (place < 0) return;
    check(place < layout.height * layout.width, "roi_pool_backward(): argmax ", place, " is outside of the image");
    of_image.data<T>()[plane + place] += grad.data<T>()[at];
  });
}

template <class T>
void averages(const RegionGrid& grid, const Tensor& image, const Tensor& boxes, const Tensor& out) {
  const Layout layout(grid, image, out);
  visit_bins<T>(grid, layout, boxes, image.size(0), [&](int64_t at, Range rows, Range columns, int64_t plane) {
    const int64_t area =
        std::max<int64_t>(rows.end - rows.begin, 0) * std::max<int64_t>(columns.end - columns.begin, 0);
    T sum = 0;
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x) sum += image.data<T>()[plane + y * layout.width + x];
    }
    out.data<T>()[at] = area == 0 ? T(0) : sum / static_cast<T>(area);
  });
}

template <class T>
void averages_backward(const RegionGrid& grid, const Tensor& grad, const Tensor& boxes, const Tensor& of_image) {
  const Layout layout(grid, of_image, grad);
  visit_bins<T>(grid, layout, boxes, of_image.size(0), [&](int64_t at, Range rows, Range columns, int64_t plane) {
    if (rows.end <= rows.begin || columns.end <= columns.begin) return;
    const T share = grad.data<T>()[at] / static_cast<T>((rows.end - rows.begin) * (columns.end - columns.begin));
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x) of_image.data<T>()[plane + y * layout.width + x] += share;
    }
  });
}

template <class T>
int64_t suppress(const Tensor& boxes, const Tensor& order, double threshold, const Tensor& keep) {
  const int64_t count = boxes.size(0);
  const T* corners = boxes.data<T>();
  const int64_t* sorted = order.data<int64_t>();
  std::vector<T> areas(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const T* box = corners + 4 * i;
    areas[static_cast<size_t>(i)] = (box[2] - box[0]) * (box[3] - box[1]);
  }
  std::vector<char> is_gone(static_cast<size_t>(count), 0);
  int64_t kept = 0;
  for (int64_t at = 0; at < count; ++at) {
    const int64_t i = sorted[at];
    if (is_gone[static_cast<size_t>(i)]) continue;
    if (at % 256 == 0) check_work_cancelled();
    keep.data<int64_t>()[kept++] = i;
    const T* a = corners + 4 * i;
    for (int64_t after = at + 1; after < count; ++after) {
      const int64_t j = sorted[after];
      if (is_gone[static_cast<size_t>(j)]) continue;
      const T* b = corners + 4 * j;
      const T width = std::max(T(0), std::min(a[2], b[2]) - std::max(a[0], b[0]));
      const T height = std::max(T(0), std::min(a[3], b[3]) - std::max(a[1], b[1]));
      const T shared = width * height;
      const T overlap = shared / (areas[static_cast<size_t>(i)] + areas[static_cast<size_t>(j)] - shared);
      if (static_cast<double>(overlap) > threshold) is_gone[static_cast<size_t>(j)] = 1;
    }
  }
  return kept;
}

template <class Fn>
decltype(auto) with_type(const Tensor& boxes, Fn&& fn) {
  return boxes.dtype() == DType::kFloat32 ? fn.template operator()<float>() : fn.template operator()<double>();
}

}  // namespace

void region_means(const RegionGrid& grid, const Tensor& image, const Tensor& boxes, const Tensor& out) {
  if (boxes.device().kind == kCUDA) return regions_cuda(RegionTask::kMeans, false, grid, image, boxes, out, Tensor());
  with_type(boxes, [&]<class T>() { means<T>(grid, image, boxes, out); });
}
void region_means_backward(const RegionGrid& grid, const Tensor& grad, const Tensor& boxes, const Tensor& of_image) {
  if (boxes.device().kind == kCUDA)
    return regions_cuda(RegionTask::kMeans, true, grid, of_image, boxes, grad, Tensor());
  with_type(boxes, [&]<class T>() { means_backward<T>(grid, grad, boxes, of_image); });
}
void region_maxima(const RegionGrid& grid, const Tensor& image, const Tensor& boxes, const Tensor& out,
                   const Tensor& places) {
  if (boxes.device().kind == kCUDA) return regions_cuda(RegionTask::kMaxima, false, grid, image, boxes, out, places);
  with_type(boxes, [&]<class T>() { maxima<T>(grid, image, boxes, out, places); });
}
void region_maxima_backward(const RegionGrid& grid, const Tensor& grad, const Tensor& boxes, const Tensor& places,
                            const Tensor& of_image) {
  if (boxes.device().kind == kCUDA) return regions_cuda(RegionTask::kMaxima, true, grid, of_image, boxes, grad, places);
  with_type(boxes, [&]<class T>() { maxima_backward<T>(grid, grad, boxes, places, of_image); });
}
void region_averages(const RegionGrid& grid, const Tensor& image, const Tensor& boxes, const Tensor& out) {
  if (boxes.device().kind == kCUDA)
    return regions_cuda(RegionTask::kAverages, false, grid, image, boxes, out, Tensor());
  with_type(boxes, [&]<class T>() { averages<T>(grid, image, boxes, out); });
}
void region_averages_backward(const RegionGrid& grid, const Tensor& grad, const Tensor& boxes, const Tensor& of_image) {
  if (boxes.device().kind == kCUDA)
    return regions_cuda(RegionTask::kAverages, true, grid, of_image, boxes, grad, Tensor());
  with_type(boxes, [&]<class T>() { averages_backward<T>(grid, grad, boxes, of_image); });
}
int64_t suppress_overlaps(const Tensor& boxes, const Tensor& order, double threshold, const Tensor& keep) {
  if (boxes.device().kind == kCUDA) return suppress_overlaps_cuda(boxes, order, threshold, keep);
  return with_type(boxes, [&]<class T>() { return suppress<T>(boxes, order, threshold, keep); });
}

}  // namespace tensord::kernels
