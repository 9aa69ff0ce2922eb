// Which operators keep the samples of a batch apart (core/ops/samples.h), beside the pointwise ones.
#include "core/ops/samples.h"

#include <algorithm>

#include "core/ops/fused.h"
#include "core/ops/packed.h"

namespace tensord::kernels {
namespace {

using ops::Value;
using Arguments = std::span<const Value>;

bool is_constant(const Value& value) { return value.is_tensor() && !value.to_tensor().is_meta(); }
int64_t ndim_of(const Value& value) { return value.is_tensor() ? value.to_tensor().ndim() : 0; }
bool always(Arguments) { return true; }
// A weight that comes with each run could be as large as the batch along dimension 0.
bool has_constant_weight(Arguments v) {
  return is_constant(v[1]) && (v.size() < 3 || !v[2].is_tensor() || is_constant(v[2]));
}

// Whether the dimension, or one of several, is 0; none at all are all of them.
bool is_along_samples(const Value& dims, int64_t ndim) {
  const auto is_first = [ndim](const Value& dim) {
    return !dim.is_int() || dim.to_int() == 0 || dim.to_int() == -ndim;
  };
  if (!dims.is_list()) return is_first(dims);
  const auto& items = dims.to_list()->items;
  return items.empty() || std::any_of(items.begin(), items.end(), is_first);
}
bool works_along_others(Arguments v) { return !is_along_samples(v[1], ndim_of(v[0])); }

KEEPS_SAMPLES("tensord::packed", [](Arguments v) {
  const auto* packed = dynamic_cast<const ops::PackedOp*>(v[0].to_opaque().get());
  return packed && std::all_of(packed->calls().begin(), packed->calls().end(),
                               [](const ops::BoundCall& call) { return ops::keeps_samples(*call.op, call.arguments); });
});
KEEPS_SAMPLES("tensord::packed.other", [](Arguments v) {
  const auto* packed = dynamic_cast<const ops::PackedOp*>(v[0].to_opaque().get());
  return packed && std::all_of(packed->calls().begin(), packed->calls().end(),
                               [](const ops::BoundCall& call) { return ops::keeps_samples(*call.op, call.arguments); });
});
// Pointwise but for the last dimension.
KEEPS_SAMPLES("tensord::fused", [](Arguments v) {
  const auto& inputs = v[1].to_list()->items;
  return std::any_of(inputs.begin(), inputs.end(), [](const Value& input) { return ndim_of(input) >= 2; });
});

KEEPS_SAMPLES("aten::conv1d", has_constant_weight);
KEEPS_SAMPLES("aten::conv2d", has_constant_weight);
KEEPS_SAMPLES("aten::conv3d", has_constant_weight);
KEEPS_SAMPLES("aten::conv1d.padding", has_constant_weight);
KEEPS_SAMPLES("aten::conv2d.padding", has_constant_weight);
KEEPS_SAMPLES("aten::conv3d.padding", has_constant_weight);
KEEPS_SAMPLES("aten::_convolution", has_constant_weight);
KEEPS_SAMPLES("aten::convolution", has_constant_weight);
KEEPS_SAMPLES("aten::linear", has_constant_weight);
KEEPS_SAMPLES("aten::mm", [](Arguments v) { return is_constant(v[1]); });
// A matrix of fewer dimensions belongs to all samples; two of two dimensions are one product.
KEEPS_SAMPLES("aten::matmul", [](Arguments v) {
  return is_constant(v[1]) ? v[1].to_tensor().ndim() <= 2 : std::max(ndim_of(v[0]), ndim_of(v[1])) >= 3;
});
KEEPS_SAMPLES("aten::bmm", always);
KEEPS_SAMPLES("tensord::attention", [](Arguments v) { return ndim_of(v[0]) >= 3; });
KEEPS_SAMPLES("aten::embedding", [](Arguments v) { return is_constant(v[0]); });

KEEPS_SAMPLES("aten::batch_norm", [](Arguments v) { return v[5].is_bool() && !v[5].to_bool(); });
KEEPS_SAMPLES("aten::group_norm", always);
KEEPS_SAMPLES("aten::layer_norm", [](Arguments v) {
  return v[1].is_list() && ndim_of(v[0]) > static_cast<int64_t>(v[1].to_list()->items.size());
});
KEEPS_SAMPLES("aten::softmax.int", works_along_others);
KEEPS_SAMPLES("aten::log_softmax.int", works_along_others);
KEEPS_SAMPLES("aten::mean.dim", works_along_others);
KEEPS_SAMPLES("aten::sum.dim_IntList", works_along_others);
KEEPS_SAMPLES("aten::amax", works_along_others);
KEEPS_SAMPLES("aten::amin", works_along_others);
KEEPS_SAMPLES("aten::cat", [](Arguments v) {
  const auto& items = v[0].to_list()->items;
  return !items.empty() && !is_along_samples(v[1], ndim_of(items.front()));
});

// Without a batch dimension the channels come first, and these keep them apart as well.
KEEPS_SAMPLES("aten::max_pool1d", always);
KEEPS_SAMPLES("aten::max_pool2d", always);
KEEPS_SAMPLES("aten::max_pool3d", always);
KEEPS_SAMPLES("aten::avg_pool1d", always);
KEEPS_SAMPLES("aten::avg_pool2d", always);
KEEPS_SAMPLES("aten::avg_pool3d", always);
KEEPS_SAMPLES("aten::adaptive_avg_pool1d", always);
KEEPS_SAMPLES("aten::adaptive_avg_pool2d", always);
KEEPS_SAMPLES("aten::adaptive_avg_pool3d", always);
KEEPS_SAMPLES("aten::upsample_nearest2d", always);
KEEPS_SAMPLES("aten::upsample_nearest2d.vec", always);
KEEPS_SAMPLES("aten::upsample_bilinear2d", always);
KEEPS_SAMPLES("aten::upsample_bilinear2d.vec", always);
KEEPS_SAMPLES("aten::clone", always);
KEEPS_SAMPLES("aten::constant_pad_nd", [](Arguments v) {
  return v[1].is_list() && static_cast<int64_t>(v[1].to_list()->items.size()) < 2 * ndim_of(v[0]);
});

}  // namespace
}  // namespace tensord::kernels
