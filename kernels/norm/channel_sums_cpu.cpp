// Sums over the channels of a tensor: the division of the work.
#include <algorithm>

#include "core/base/parallel.h"
#include "kernels/norm/channels.h"

namespace tensord::kernels {
namespace {

template <class T>
std::vector<ChannelSums> sum_rows(const ChannelLayout& layout, const T* x, const T* g, const double* means) {
  const auto channels = static_cast<size_t>(layout.channels);
  const int64_t parts = std::clamp<int64_t>(layout.rows() * layout.channels / 65536, 1, 16);
  std::vector<ChannelSums> sums(channels * static_cast<size_t>(parts));
  parallel_run(static_cast<int>(parts), [&](int part) {
    const int64_t begin = layout.rows() * part / parts, end = layout.rows() * (part + 1) / parts,
                  offset = begin * layout.channels;
    sum_channel_rows(x + offset, g ? g + offset : nullptr, end - begin, layout.channels, means,
                     sums.data() + static_cast<size_t>(part) * channels);
  });
  for (size_t i = channels; i < sums.size(); ++i) sums[i % channels].join(sums[i]);
  sums.resize(channels);
  return sums;
}

template <class T>
std::vector<ChannelSums> sum_all(const Tensor& x, const Tensor& g, std::span<const double> means) {
  const ChannelLayout layout(x);
  const T *from = x.data<T>(), *from_g = g.defined() ? g.data<T>() : nullptr;
  if (layout.by_rows) return sum_rows(layout, from, from_g, means.empty() ? nullptr : means.data());
  std::vector<ChannelSums> sums(static_cast<size_t>(layout.channels));
  parallel_for_cost(layout.channels, 0.2 * static_cast<double>(layout.rows()), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const int64_t offset = c * layout.inner;
      sums[static_cast<size_t>(c)] =
          sum_channel(from + offset, from_g ? from_g + offset : nullptr, layout.batch, layout.step(), layout.inner,
                      means.empty() ? nullptr : &means[static_cast<size_t>(c)]);
    }
  });
  return sums;
}

}  // namespace

std::vector<ChannelSums> channel_sums(const Tensor& x, const Tensor& g, std::span<const double> means) {
  if (x.dtype() == DType::kFloat64) return sum_all<double>(x, g, means);
  return sum_all<float>(x, g, means);
}

}  // namespace tensord::kernels
