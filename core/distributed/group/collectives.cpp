// Collective operations: converts the arguments to bytes for the backend, and what must be equal on all ranks to a
// string.
#include <algorithm>
#include <deque>
#include <numeric>

#include "core/base/error.h"
#include "core/distributed/group/buffers.h"
#include "core/distributed/group/process_group.h"

namespace tensord::distributed {
namespace {

using Kind = ReduceOp::Kind;

// ", float32[2, 3]".
std::string shape_string(const Tensor& tensor) { return ", " + describe(tensor); }

std::string shapes_text(std::span<const Tensor> tensors) {
  std::string text;
  for (const Tensor& tensor : tensors) text += shape_string(tensor);
  return text;
}

std::string op_text(ReduceOp op) { return ", " + to_string(op); }
std::string root_text(int root) { return concat(", root ", root); }

// Checks that there is one tensor for each rank, with the dtype and device of `like`.
void check_list(Backend& backend, const std::string& operation, const char* argument, std::span<const Tensor> tensors,
                int size, const Tensor& like, bool is_target) {
  check(tensors.size() == static_cast<size_t>(size), operation, ": ", argument, " has ", tensors.size(),
        " tensors, expected one for each of ", size, " ranks");
  for (const Tensor& tensor : tensors) {
    is_target ? check_target(backend, operation, argument, tensor) : check_source(backend, operation, argument, tensor);
    check_alike(operation, argument, tensor, like);
  }
}

void check_same_sizes(const std::string& operation, const char* argument, const Tensor& tensor, const Tensor& expected,
                      size_t index) {
  check(tensor.sizes() == expected.sizes(), operation, ": invalid tensor size of ", argument, " at index ", index,
        " (expected ", expected.sizes(), ", got ", tensor.sizes(), ")");
}

Elements with_count(Elements elements, size_t count) {
  elements.count = count;
  return elements;
}

// Reduces each tensor in place; all reductions are started together.
void all_reduce_each(DeviceBackend& backend, std::span<const Tensor> tensors, const Elements& one,
                     const BackendCall& call) {
  std::deque<Packed> all;
  for (const Tensor& tensor : tensors) all.emplace_back(tensor).pack();
  backend.batch(call, [&] {
    for (const Packed& packed : all) backend.all_reduce(packed.data(), with_count(one, packed.count()), call);
  });
  for (const Packed& packed : all) packed.unpack();
}

std::vector<size_t> sizes_bytes_of(std::span<const Tensor> tensors) {
  std::vector<size_t> sizes;
  for (const Tensor& tensor : tensors) sizes.push_back(tensor.size_bytes());
  return sizes;
}

}  // namespace

Elements ProcessGroup::elements_of(const std::string& operation, ReduceOp op, const Tensor& tensor) const {
  const DType dtype = tensor.dtype();
  const ReduceFunction reduce = reduce_function(operation, op, dtype);
  if (DeviceBackend* const device = backend_->on_device()) device->check_reduction(operation, op, dtype);
  return {static_cast<size_t>(tensor.numel()), size_of(dtype), reduce, dtype, op};
}

// Packs one rank's input of the reduction. If the op needs preparation, the packed data is prepared in a separate
// buffer. Device backends do this themselves.
void ProcessGroup::pack_for(ReduceOp op, Packed& packed) const {
  const bool is_prepared = has_preparation(op) && !backend_->on_device();
  if (is_prepared) packed.own();
  packed.pack();
  if (is_prepared) prepare_elements(op, packed.dtype(), packed.data(), packed.count());
}

void ProcessGroup::finish_for(ReduceOp op, const Packed& packed) const {
  if (!backend_->on_device()) finish_elements(op, packed.dtype(), packed.data(), packed.count(), size_);
}

WorkPtr ProcessGroup::broadcast(const Tensor& tensor, int root, Milliseconds timeout) {
  check_rank("broadcast", "the root", root);
  rank_ == root ? check_source(*backend_, "broadcast", "tensor", tensor)
                : check_target(*backend_, "broadcast", "tensor", tensor);
  return enqueue({"broadcast", shape_string(tensor) + root_text(root), tensor.device()}, timeout,
                 [=, this](const BackendCall& call) {
                   Packed packed(tensor);
                   if (rank_ == root) packed.pack();
                   backend_->broadcast(packed.data(), packed.size_bytes(), root, call);
                   if (rank_ != root) packed.unpack();
                 });
}

WorkPtr ProcessGroup::all_reduce(const Tensor& tensor, ReduceOp op, Milliseconds timeout) {
  check_target(*backend_, "all_reduce", "tensor", tensor);
  const Elements elements = elements_of("all_reduce", op, tensor);
  return enqueue({"all_reduce", shape_string(tensor) + op_text(op), tensor.device()}, timeout,
                 [=, this](const BackendCall& call) {
                   Packed packed(tensor);
                   pack_for(op, packed);
                   backend_->all_reduce(packed.data(), elements, call);
                   finish_for(op, packed);
                   packed.unpack();
                 });
}

WorkPtr ProcessGroup::all_reduce_coalesced(std::vector<Tensor> tensors, ReduceOp op, Milliseconds timeout) {
  const char* const name = "all_reduce_coalesced";
  check(!tensors.empty(), name, ": no tensors");
  for (const Tensor& tensor : tensors) {
    check_target(*backend_, name, "a tensor", tensor);
    check_alike(name, "a tensor", tensor, tensors.front());
  }
  const Elements one = elements_of(name, op, tensors.front());
  Fingerprint fingerprint{name, shapes_text(tensors) + op_text(op), tensors.front().device()};
  return enqueue(std::move(fingerprint), timeout, [=, this](const BackendCall& call) {
    if (DeviceBackend* const device = backend_->on_device()) return all_reduce_each(*device, tensors, one, call);
    Packed packed(tensors);
    pack_for(op, packed);
    backend_->all_reduce(packed.data(), with_count(one, packed.count()), call);
    finish_for(op, packed);
    packed.unpack();
  });
}

WorkPtr ProcessGroup::reduce(const Tensor& tensor, int root, ReduceOp op, Milliseconds timeout) {
  check_rank("reduce", "the root", root);
  rank_ == root ? check_target(*backend_, "reduce", "tensor", tensor)
                : check_source(*backend_, "reduce", "tensor", tensor);
  const Elements elements = elements_of("reduce", op, tensor);
  Fingerprint fingerprint{"reduce", shape_string(tensor) + op_text(op) + root_text(root), tensor.device()};
  return enqueue(std::move(fingerprint), timeout, [=, this](const BackendCall& call) {
    Packed packed(tensor);
    pack_for(op, packed);
    backend_->reduce(packed.data(), elements, root, call);
    if (rank_ != root) return;
    finish_for(op, packed);
    packed.unpack();
  });
}

WorkPtr ProcessGroup::all_gather(std::vector<Tensor> outputs, const Tensor& input, Milliseconds timeout) {
  check_source(*backend_, "all_gather", "input", input);
  check_list(*backend_, "all_gather", "outputs", outputs, size_, input, true);
  check_same_sizes("all_gather", "outputs", outputs[static_cast<size_t>(rank_)], input, static_cast<size_t>(rank_));
  Fingerprint fingerprint{"all_gather", shapes_text(outputs), input.device()};
  return enqueue(std::move(fingerprint), timeout, [=, this](const BackendCall& call) {
    const Packed source(input);
    Packed target(outputs);
    source.pack();
    backend_->all_gather(source.data(), target.data(), sizes_bytes_of(outputs), call);
    target.unpack();
  });
}

WorkPtr ProcessGroup::all_gather_into_tensor(const Tensor& output, const Tensor& input, Milliseconds timeout) {
  const char* const name = "all_gather_into_tensor";
  check_source(*backend_, name, "input", input);
  check_target(*backend_, name, "output", output);
  check_alike(name, "output", output, input);
  check(output.numel() == input.numel() * size_, name, ": output has ", output.numel(), " elements, expected ", size_,
        " times the ", input.numel(), " of input");
  return enqueue({name, shape_string(input), input.device()}, timeout, [=, this](const BackendCall& call) {
    const Packed source(input);
    Packed target(output);
    // The input may be a part of the output.
    if (overlap(input, output) != Overlap::kNo) target.own();
    source.pack();
    const std::vector<size_t> sizes(static_cast<size_t>(size_), source.size_bytes());
    backend_->all_gather(source.data(), target.data(), sizes, call);
    target.unpack();
  });
}

WorkPtr ProcessGroup::gather(std::vector<Tensor> outputs, const Tensor& input, int root, Milliseconds timeout) {
  check_rank("gather", "the root", root);
  check_source(*backend_, "gather", "input", input);
  if (rank_ == root) {
    check_list(*backend_, "gather", "outputs", outputs, size_, input, true);
    for (size_t i = 0; i < outputs.size(); ++i) check_same_sizes("gather", "outputs", outputs[i], input, i);
  } else {
    check(outputs.empty(), "gather: only the root passes outputs, which is rank ", root);
  }
  return enqueue({"gather", shape_string(input) + root_text(root), input.device()}, timeout,
                 [=, this](const BackendCall& call) {
                   const Packed source(input);
                   source.pack();
                   if (rank_ != root) return backend_->gather(source.data(), nullptr, source.size_bytes(), root, call);
                   Packed target(outputs);
                   backend_->gather(source.data(), target.data(), source.size_bytes(), root, call);
                   target.unpack();
                 });
}

WorkPtr ProcessGroup::scatter(const Tensor& output, std::vector<Tensor> inputs, int root, Milliseconds timeout) {
  check_rank("scatter", "the root", root);
  check_target(*backend_, "scatter", "output", output);
  if (rank_ == root) {
    check_list(*backend_, "scatter", "inputs", inputs, size_, output, false);
    for (size_t i = 0; i < inputs.size(); ++i) check_same_sizes("scatter", "inputs", inputs[i], output, i);
  } else {
    check(inputs.empty(), "scatter: only the root passes inputs, which is rank ", root);
  }
  return enqueue({"scatter", shape_string(output) + root_text(root), output.device()}, timeout,
                 [=, this](const BackendCall& call) {
                   Packed target(output);
                   if (rank_ != root) {
                     backend_->scatter(nullptr, target.data(), target.size_bytes(), root, call);
                   } else {
                     const Packed source(inputs);
                     source.pack();
                     backend_->scatter(source.data(), target.data(), target.size_bytes(), root, call);
                   }
                   target.unpack();
                 });
}

WorkPtr ProcessGroup::reduce_scatter(const Tensor& output, std::vector<Tensor> inputs, ReduceOp op,
                                     Milliseconds timeout) {
  const char* const name = "reduce_scatter";
  check_target(*backend_, name, "output", output);
  check_list(*backend_, name, "inputs", inputs, size_, output, false);
  check_same_sizes(name, "inputs", inputs[static_cast<size_t>(rank_)], output, static_cast<size_t>(rank_));
  const Elements one = elements_of(name, op, output);
  Fingerprint fingerprint{name, shapes_text(inputs) + op_text(op), output.device()};
  return enqueue(std::move(fingerprint), timeout, [=, this](const BackendCall& call) {
    Packed source(inputs), target(output);
    if (!backend_->on_device()) source.own();
    pack_for(op, source);
    std::vector<size_t> counts;
    for (const Tensor& input : inputs) counts.push_back(static_cast<size_t>(input.numel()));
    backend_->reduce_scatter(source.data(), target.data(), counts, with_count(one, source.count()), call);
    finish_for(op, target);
    target.unpack();
  });
}

WorkPtr ProcessGroup::reduce_scatter_tensor(const Tensor& output, const Tensor& input, ReduceOp op,
                                            Milliseconds timeout) {
  const char* const name = "reduce_scatter_tensor";
  check_target(*backend_, name, "output", output);
  check_source(*backend_, name, "input", input);
  check_alike(name, "input", input, output);
  check(input.numel() == output.numel() * size_, name, ": input has ", input.numel(), " elements, expected ", size_,
        " times the ", output.numel(), " of output");
  const Elements elements = elements_of(name, op, input);
  return enqueue({name, shape_string(output) + op_text(op), output.device()}, timeout,
                 [=, this](const BackendCall& call) {
                   Packed source(input), target(output);
                   if (!backend_->on_device()) source.own();
                   pack_for(op, source);
                   const std::vector<size_t> counts(static_cast<size_t>(size_), target.count());
                   backend_->reduce_scatter(source.data(), target.data(), counts, elements, call);
                   finish_for(op, target);
                   target.unpack();
                 });
}

WorkPtr ProcessGroup::barrier(Milliseconds timeout) {
  return enqueue({"barrier", ""}, timeout, [this](const BackendCall& call) { barrier_on_host(call); });
}

void ProcessGroup::monitored_barrier(Milliseconds timeout, bool waits_for_all) {
  timeout = chosen(timeout);
  const std::string prefix = concat("barrier/", ++barriers_, "/"), verdict = prefix + "verdict";
  if (rank_ != 0) {
    store_->set(concat(prefix, rank_), "1");
    // Rank 0 may arrive later than the others by up to its own timeout, and it decides.
    const std::string text = store_->get(verdict, 2 * timeout);
    if (text.empty()) return;
    fail(ErrorCode::kDeadlineExceeded, "monitored_barrier: rank ", rank_,
         " successfully reached it, but rank 0 says: ", text);
  }
  const SteadyTime deadline = std::chrono::steady_clock::now() + timeout;
  std::string absent;
  for (int rank = 1; rank < size_ && (absent.empty() || waits_for_all); ++rank) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
    try {
      store_->wait(concat(prefix, rank), std::max(left, Milliseconds(0)));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadlineExceeded) throw;
      absent += concat(absent.empty() ? "" : ", ", rank);
    }
  }
  const bool are_several = absent.find(',') != std::string::npos;
  const std::string text = absent.empty() ? ""
                                          : concat(are_several ? "Ranks " : "Rank ", absent,
                                                   " failed to pass monitoredBarrier in ", timeout.count(), " ms");
  store_->set(verdict, text);
  if (!text.empty()) fail(ErrorCode::kDeadlineExceeded, "monitored_barrier: ", text);
}

}  // namespace tensord::distributed
