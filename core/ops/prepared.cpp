#include "core/ops/prepared.h"

#include "core/base/error.h"

namespace tensord::ops {

std::string PackStore::key_of(const std::string& what, std::span<const Tensor> of) {
  std::string key = what;
  for (const Tensor& tensor : of) {
    key += ' ';
    if (!tensor) continue;
    key += concat(to_string(tensor.device()), " ", tensor.storage()->data(), "+", tensor.offset(),
                  to_string(tensor.sizes()), to_string(tensor.strides()), name_of(tensor.dtype()));
  }
  return key;
}

}  // namespace tensord::ops
