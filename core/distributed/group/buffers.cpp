#include "core/distributed/group/buffers.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/tensor/device_runtime.h"

namespace tensord::distributed {
namespace {

// False only if each index certainly has its own element: each dimension's stride exceeds the reach of all smaller
// strides.
bool may_share_elements(const Tensor& tensor) {
  if (tensor.numel() <= 1) return false;
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (int64_t i = 0; i < tensor.ndim(); ++i) {
    if (tensor.size(i) > 1) dims.emplace_back(std::abs(tensor.stride(i)), tensor.size(i));
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

}  // namespace

void check_source(Backend& backend, const std::string& operation, const char* argument, const Tensor& tensor) {
  check(tensor.defined(), operation, ": ", argument, " is undefined");
  if (const DeviceBackend* const device = backend.on_device()) {
    device->check_device(operation, argument, tensor.device());
  } else if (tensor.device() != Device{}) {
    fail(ErrorCode::kUnimplemented, operation, ": ", argument, " is on ", to_string(tensor.device()),
         ", expected memory of the CPU");
  }
  check(!tensor.is_meta(), operation, ": ", argument, " is a meta tensor, which has no elements");
}

void check_target(Backend& backend, const std::string& operation, const char* argument, const Tensor& tensor) {
  check_source(backend, operation, argument, tensor);
  check(tensor.storage()->ensure_writable(), operation, ": ", argument, " is in memory that cannot be written");
  check(!may_share_elements(tensor), operation, ": ", argument, " has elements that share memory (strides ",
        tensor.strides(), " of ", tensor.sizes(), "); make a copy first");
}

void check_alike(const std::string& operation, const char* argument, const Tensor& tensor, const Tensor& like) {
  check(tensor.dtype() == like.dtype(), operation, ": ", argument, " is ", name_of(tensor.dtype()), ", expected ",
        name_of(like.dtype()));
  check(tensor.device() == like.device(), operation, ": ", argument, " is on ", to_string(tensor.device()),
        ", expected ", to_string(like.device()));
}

Packed::Packed(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  check_internal(!tensors_.empty(), "nothing to pack");
  element_bytes_ = size_of(dtype());
  for (const Tensor& tensor : tensors_) {
    count_ += static_cast<size_t>(tensor.numel());
    if (!device().is_host()) tensor.storage()->record_stream(current_stream(device()));
  }
  if (tensors_.size() == 1 && tensors_.front().is_contiguous()) {
    data_ = static_cast<std::byte*>(tensors_.front().raw_data());
  } else {
    own();
  }
}

void Packed::own() {
  if (memory_.defined()) return;
  memory_ = Tensor::empty(Dims{static_cast<int64_t>(count_)}, dtype(), device());
  data_ = static_cast<std::byte*>(memory_.raw_data());
}

// Calls fn with each tensor and the dense tensor of its elements.
template <class Fn>
void Packed::for_parts(const Fn& fn) const {
  if (!memory_.defined()) return;
  int64_t at = 0;
  for (const Tensor& tensor : tensors_) {
    fn(tensor, memory_.as_view(tensor.sizes(), contiguous_strides(tensor.sizes()), at));
    at += tensor.numel();
  }
}

void Packed::pack() const {
  for_parts([](const Tensor& tensor, const Tensor& part) { part.copy_from(tensor); });
}

void Packed::unpack() const {
  for_parts([](const Tensor& tensor, const Tensor& part) { tensor.copy_from(part); });
  for (const Tensor& tensor : tensors_) tensor.storage()->bump_version();
}

}  // namespace tensord::distributed
