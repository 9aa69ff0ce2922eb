// any and all over several dimensions, one dimension after another from the last on, so that the numbers of the others
// stay valid.
#include <algorithm>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/reduce/dims.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

void add_truth_dims(const std::string& name) {
  ops::OpBuilder(concat(name, ".dims"), __FILE__, __LINE__)
      .impl([name](const Tensor& self, const std::optional<Dims>& dims, bool keepdim) {
        Dims order;
        for (const int64_t dim : dims.value_or(Dims())) order.push_back(wrap_dim(dim, self.ndim()));
        if (!dims) {
          for (int64_t dim = 0; dim < self.ndim(); ++dim) order.push_back(dim);
        }
        std::sort(order.begin(), order.end());
        check(std::adjacent_find(order.begin(), order.end()) == order.end(),
              "dim appears multiple times in the list of dims ", to_string(order));
        // No dimensions: only converts to bool (uint8 stays).
        if (order.empty() || self.ndim() == 0) {
          const Tensor truth = ops::ne(self, ops::Scalar(0));
          return self.dtype() == DType::kUInt8 ? ops::to(truth, self.dtype()) : truth;
        }
        Tensor x = self;
        for (size_t i = order.size(); i-- > 0;)
          x = ops::call_by_name(concat(name, ".dim").c_str(), x, order[i], keepdim);
        return x;
      })
      .constant_result();
}
[[maybe_unused]] const bool truth_dims_registered = (add_truth_dims("aten::any"), add_truth_dims("aten::all"), true);

}  // namespace
}  // namespace tensord::kernels
