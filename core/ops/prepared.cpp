#include "core/ops/prepared.h"

#include "core/base/error.h"

namespace tensord::ops {

std::string PackStore::key_of(const Tensor& tensor) {
  return concat(tensor.storage()->data(), "+", tensor.offset(), to_string(tensor.sizes()), to_string(tensor.strides()),
                name_of(tensor.dtype()));
}

}  // namespace tensord::ops
