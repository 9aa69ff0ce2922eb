// Counts of values in ranges: histc.
#include "core/ops/attributes/written.h"
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::TensorMeta;
using ops::WritesInto;

constexpr int64_t kMaxBins = int64_t{1} << 31;

void check_histogram(const Tensor& x, int64_t bins, const char* name) {
  check(x.dtype() == DType::kFloat32 || x.dtype() == DType::kFloat64, name, ": not implemented for ",
        name_of(x.dtype()));
  check(bins > 0 && bins < kMaxBins, name, ": bins must be > 0 and below 2^31, but got ", bins);
}

OP("aten::histc")
    .infer([](const Tensor& x, int64_t bins, const Scalar&, const Scalar&) {
      check_histogram(x, bins, "histc");
      return TensorMeta{Dims{bins}, x.dtype(), {}, x.device()};
    })
    .constant_result()
    .set<WritesInto>(WritesInto::kSameDType);

}  // namespace
}  // namespace tensord::kernels
