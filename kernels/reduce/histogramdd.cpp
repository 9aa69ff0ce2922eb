// histogram and histogramdd: counts of points, or sums of their weights, in the bins between edges.
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

OP("aten::histogram.bins_tensor").constant_result();
OP("aten::histogram.bin_ct").constant_result();

OP("aten::_histogramdd_bin_edges").constant_result();
OP("aten::_histogramdd_from_bin_cts").constant_result();
OP("aten::_histogramdd_from_bin_tensors").constant_result();

OP("aten::histogramdd").constant_result();
OP("aten::histogramdd.int_bins").constant_result();
OP("aten::histogramdd.TensorList_bins").constant_result();

}  // namespace
}  // namespace tensord::kernels
