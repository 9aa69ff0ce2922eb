#include "server/executor/strategies/ensemble_tensors.h"

#include "server/executor/model/reshape.h"
#include "server/executor/model/unsigned_widening.h"

namespace tensord::server {

void fit_batch(InferTensor& tensor, const EnsemblePlan::BatchFit& fit) {
  using Change = EnsemblePlan::BatchFit::Change;
  Dims sizes = tensor.shape;
  if (fit.change == Change::kAdd && sizes.size() + 1 == fit.rank) {
    sizes.insert(0, 1);
  } else if (fit.change == Change::kTake && sizes.size() == fit.rank + 1 && sizes[0] == 1) {
    sizes.erase(0);
  } else {
    return;
  }
  set_sizes(tensor, sizes);
}

DataType wire_type(const InferTensor& tensor, const std::optional<DataType>& declared) {
  const bool is_narrower = declared && is_widened_unsigned(*declared) && tensor_datatype(*declared) == tensor.datatype;
  return is_narrower ? *declared : tensor.datatype;
}

}  // namespace tensord::server
