#pragma once

#include "core/tensor/cuda/address.h"
#include "core/tensor/tensor.h"

namespace tensord::kernels {

// Memory for a library's call, aligned as libraries want it. It may go when the call's work is queued, since later work
// of the same stream alone gets it again.
class Workspace {
 public:
  Workspace(size_t bytes, Device device) {
    if (bytes == 0) return;
    memory_ = Tensor::empty(Dims{static_cast<int64_t>(bytes) + kAligned - 1}, DType::kUInt8, device);
    const char* const first = static_cast<const char*>(memory_.raw_data());
    at_ = first + (kAligned - reinterpret_cast<intptr_t>(first) % kAligned) % kAligned;
  }
  cuda::DeviceAddress at() const { return at_; }  // null without bytes

 private:
  static constexpr int64_t kAligned = 256;
  Tensor memory_;
  cuda::DeviceAddress at_;
};

}  // namespace tensord::kernels
