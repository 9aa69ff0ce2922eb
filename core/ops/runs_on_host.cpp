// Runs operators with the attribute RunsOnHost on the host when the device has no kernel for them.
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/ops/attributes/written.h"
#include "core/ops/kernel_calls.h"
#include "core/ops/quantized.h"
#include "core/ops/run.h"
#include "core/tensor/device_copy.h"

namespace tensord::ops {
namespace {

using Arguments = std::span<const Value>;

// Lists and tuples in which each tensor is replaced by change(tensor).
template <class Change>
Value with_tensors(const Value& value, const Change& change) {
  if (value.is_tensor()) return value.to_tensor().defined() ? Value(change(value.to_tensor())) : value;
  if (value.is_list()) {
    List out = make_list(value.to_list()->element);
    for (const Value& item : value.to_list()->items) out->items.push_back(with_tensors(item, change));
    return out;
  }
  if (!value.is_tuple()) return value;
  std::vector<Value> items;
  for (const Value& item : value.to_tuple()->items) items.push_back(with_tensors(item, change));
  return make_tuple(std::move(items));
}

// Scales stay on the host, which reads them.
Tensor copy_to(const Tensor& tensor, Device device) {
  if (tensor.is_strided()) return tensor.to(device);
  const QuantizedTensor* const quantized = as_quantized(Value(tensor));
  if (!quantized)
    fail(ErrorCode::kUnimplemented, "a tensor of layout ", name_of(tensor.impl()->layout), " is not copied to ",
         to_string(device));
  const int64_t columns = quantized->sizes().empty() ? -1 : quantized->sizes().back();
  return Tensor(make_intrusive<QuantizedTensor>(quantized->type(), quantized->values().to(device),
                                                quantized->quantizer(), columns));
}

// The tensors of a call and their copies on the host. A tensor that is passed twice has one copy.
class HostCopies {
 public:
  Tensor to_host(const Tensor& tensor) {
    if (tensor.device().is_host() || tensor.is_meta()) return tensor;
    for (const auto& [own, copy] : copies_) {
      if (own.is_same(tensor)) return copy;
    }
    return copies_.emplace_back(tensor, copy_to(tensor, Device{})).second;
  }

  // A result that is an operand, or a view of it, is one on the device too.
  Tensor from_host(const Tensor& tensor, Device device) const {
    if (tensor.is_strided() && tensor.is_meta()) {
      return tensor.device() == device ? tensor
                                       : Tensor::meta_strided(tensor.sizes(), tensor.strides(), tensor.dtype(), device);
    }
    for (const auto& [own, copy] : copies_) {
      if (copy.is_same(tensor)) return own;
      const bool is_view = tensor.is_strided() && copy.is_strided() && copy.storage() == tensor.storage();
      if (!is_view) continue;
      if (own.strides() != copy.strides() || own.dtype() != tensor.dtype())
        fail(ErrorCode::kUnimplemented, "a result shares the memory of ", describe(own),
             ", whose copy on the host is laid out differently");
      return own.as_view(tensor.sizes(), tensor.strides(), own.offset() + tensor.offset() - copy.offset());
    }
    return copy_to(tensor, device);
  }

  // Copies back the elements that the host wrote in the copy of `tensor`.
  void write_back(const Tensor& tensor) const {
    for (const auto& [own, copy] : copies_) {
      if (own.is_same(tensor)) own.copy_from(copy);
    }
  }

  // A write must not show in another operand, whose copy is other memory.
  void check_is_apart(const Tensor& written) const {
    for (const auto& [own, copy] : copies_) {
      const bool is_other = own.is_strided() && !own.is_same(written);
      if (is_other && overlap(own, written) != Overlap::kNo)
        fail(ErrorCode::kUnimplemented, "an argument that is written shares memory with another one; clone() one");
    }
  }

 private:
  std::vector<std::pair<Tensor, Tensor>> copies_;
};

void check_call(const Op& op, const CallKeys& keys, Arguments arguments) {
  for_each_written(op, arguments, check_writable);
  if (!keys.is_mixed) return;
  if (op.infer) op.infer(arguments);  // first, so that its errors are those of the host
  check_one_device(keys);
}

void run_copies(const Op& op, const CallKeys& keys, Arguments arguments, const HostCopies& copies,
                std::span<const Value> on_host, std::vector<Value>& returns) {
  for_each_written(op, arguments, [&](const Tensor& tensor) { copies.check_is_apart(tensor); });
  const KernelFunction& code = *op.table[cell_of((keys.set & kLayoutKeys).highest(), kCPU)];
  std::vector<Value> results;
  code.run(code, op, CallKeys{keys.set, Device{}, Device{}, false}, on_host, results);
  for_each_written(op, arguments, [&](const Tensor& tensor) {
    copies.write_back(tensor);
    tensor.storage()->bump_version();
  });
  const auto from_host = [&](const Tensor& tensor) { return copies.from_host(tensor, keys.device); };
  for (const Value& result : results) returns.push_back(with_tensors(result, from_host));
}

// The copies wait for the device's earlier work. Its errors are not this call's, and must not have its name.
void run_on_host(const KernelFunction&, const Op& op, const CallKeys& keys, Arguments arguments,
                 std::vector<Value>& returns) {
  const auto named = [&](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      fail_call(op, arguments, error);
    }
  };
  named([&] { check_call(op, keys, arguments); });
  HostCopies copies;
  std::vector<Value> on_host;
  for (const Value& argument : arguments)
    on_host.push_back(with_tensors(argument, [&](const Tensor& tensor) { return copies.to_host(tensor); }));
  if (op.device_argument >= 0) on_host[static_cast<size_t>(op.device_argument)] = Device{};
  named([&] { run_copies(op, keys, arguments, copies, on_host, returns); });
}

}  // namespace

const KernelFunction kOnHost{.run = run_on_host};

}  // namespace tensord::ops
