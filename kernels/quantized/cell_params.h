#pragma once

#include <string>

#include "core/ops/unbox.h"
#include "kernels/quantized/linear_params.h"

namespace tensord::kernels {

// PyTorch's packed cell: the dynamic linear layers of one direction.
class CellParams final : public ops::OpaqueObject {
 public:
  static constexpr const char* kClass = "__torch__.torch.classes.rnn.CellParamsBase";

  CellParams(LinearParamsPtr input, LinearParamsPtr recurrent, bool reduces_range)
      : input(std::move(input)), recurrent(std::move(recurrent)), reduces_range(reduces_range) {
    check(this->input->is_half() == this->recurrent->is_half(), kClass, ": one weight is of float16 and one of qint8");
  }
  std::string class_name() const override { return kClass; }

  const LinearParamsPtr input, recurrent;
  const bool reduces_range;
};
using CellParamsPtr = IntrusivePtr<CellParams>;

}  // namespace tensord::kernels
