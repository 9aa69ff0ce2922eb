// histogram and histogramdd: counts, or sums of weights, of points by the boxes between edges.
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

OP("aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, "
   "Tensor bin_edges)")
    .constant_result();
OP("aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) "
   "-> "
   "(Tensor hist, Tensor bin_edges)")
    .constant_result();

#define HISTOGRAM_OPTIONS "Tensor? weight=None, bool density=False"
OP("aten::_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, " HISTOGRAM_OPTIONS ") -> Tensor[]")
    .constant_result();
OP("aten::_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, " HISTOGRAM_OPTIONS ") -> Tensor")
    .constant_result();
OP("aten::_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, " HISTOGRAM_OPTIONS ") -> Tensor")
    .constant_result();

OP("aten::histogramdd(Tensor self, int[] bins, float[]? range=None, " HISTOGRAM_OPTIONS
   ") -> (Tensor hist, Tensor[] "
   "bin_edges)")
    .constant_result();
OP("aten::histogramdd.int_bins(Tensor self, int bins, float[]? range=None, " HISTOGRAM_OPTIONS
   ") -> (Tensor hist, Tensor[] "
   "bin_edges)")
    .constant_result();
OP("aten::histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, " HISTOGRAM_OPTIONS
   ") -> (Tensor "
   "hist, Tensor[] bin_edges)")
    .constant_result();

}  // namespace
}  // namespace tensord::kernels
