#include "server/executor/model/reshape.h"

#include "core/base/error.h"
#include "core/tensor/shape.h"

namespace tensord::server {

void reshape(InferTensor& tensor, const Dims& from, const Dims& to) {
  Dims open;
  bool fits = tensor.shape.size() == from.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    if (from[i] < 0) open.push_back(tensor.shape[i]);
    fits = from[i] < 0 || from[i] == tensor.shape[i];
  }
  Dims sizes = to;
  size_t used = 0;
  for (int64_t& size : sizes) {
    if (size < 0 && used < open.size()) size = open[used++];
  }
  if (!fits || checked_numel(sizes) != checked_numel(tensor.shape)) {
    fail(ErrorCode::kFailedPrecondition, "reshape of '", tensor.name, "': expected shape ", to_string(from), ", got ",
         to_string(tensor.shape));
  }
  set_sizes(tensor, sizes);
}

void set_sizes(InferTensor& tensor, const Dims& sizes) {
  tensor.shape = sizes;
  if (!tensor.tensor.defined()) return;
  const Tensor whole = tensor.tensor.contiguous();
  tensor.tensor = whole.as_view(sizes, contiguous_strides(sizes), whole.offset());
}

}  // namespace tensord::server
