#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/distributed/group/buffers.h"
#include "core/distributed/group/process_group.h"

namespace tensord::distributed {
namespace {

std::vector<size_t> part_sizes(const std::string& operation, const char* argument, const Tensor& tensor,
                               std::span<const int64_t> rows, int size) {
  check(tensor.ndim() > 0, operation, ": ", argument, " is a scalar, expected rows to split");
  const auto row_bytes =
      static_cast<size_t>(tensor.numel() / std::max<int64_t>(1, tensor.size(0))) * size_of(tensor.dtype());
  std::vector<size_t> sizes;
  if (rows.empty()) {
    check(tensor.size(0) % size == 0, operation, ": ", argument, " has ", tensor.size(0),
          " rows, which do not split among ", size, " ranks");
    sizes.assign(static_cast<size_t>(size), row_bytes * static_cast<size_t>(tensor.size(0) / size));
    return sizes;
  }
  check(rows.size() == static_cast<size_t>(size), operation, ": ", argument, " has ", rows.size(),
        " split sizes, expected one for each of ", size, " ranks");
  for (const int64_t count : rows) {
    check(count >= 0, operation, ": ", argument, " has a split of ", count, " rows");
    sizes.push_back(row_bytes * static_cast<size_t>(count));
  }
  check(std::accumulate(rows.begin(), rows.end(), int64_t{0}) == tensor.size(0), operation, ": splits of ", argument,
        " do not sum to its ", tensor.size(0), " rows");
  return sizes;
}

std::vector<size_t> sizes_of(std::span<const Tensor> tensors) {
  std::vector<size_t> sizes;
  for (const Tensor& tensor : tensors) sizes.push_back(tensor.size_bytes());
  return sizes;
}

// Every rank tells each other one how many bytes come: an engine must not meet parts that do not fit.
void exchange(Engine& engine, const Packed& source, const std::vector<size_t>& in_bytes, const Packed& target,
              const std::vector<size_t>& out_bytes, const EngineCall& call) {
  const std::vector<size_t> each(in_bytes.size(), sizeof(size_t));
  std::vector<size_t> coming(in_bytes.size());
  engine.all_to_all(reinterpret_cast<const std::byte*>(in_bytes.data()), each,
                    reinterpret_cast<std::byte*>(coming.data()), each, call);
  for (size_t rank = 0; rank < coming.size(); ++rank) {
    check(coming[rank] == out_bytes[rank], "rank ", rank, " sends ", coming[rank], " bytes, expected ",
          out_bytes[rank]);
  }
  // Not before all ranks have found that their parts fit.
  engine.barrier(call);
  engine.all_to_all(source.data(), in_bytes, target.data(), out_bytes, call);
}

}  // namespace

WorkPtr ProcessGroup::all_to_all(std::vector<Tensor> outputs, std::vector<Tensor> inputs, Milliseconds timeout) {
  const char* const name = "all_to_all";
  check(outputs.size() == static_cast<size_t>(size_) && inputs.size() == outputs.size(), name, ": got ", outputs.size(),
        " outputs and ", inputs.size(), " inputs, expected one for each of ", size_, " ranks");
  for (const Tensor& input : inputs) check_source(name, "an input", input);
  for (const Tensor& output : outputs) check_target(name, "an output", output);
  const DType dtype = inputs.front().dtype();
  for (const Tensor& input : inputs) check_same_dtype(name, "an input", input, dtype);
  for (const Tensor& output : outputs) check_same_dtype(name, "an output", output, dtype);
  return enqueue({name, concat(", ", name_of(dtype))}, timeout, [=, this](const EngineCall& call) {
    const Packed source(inputs);
    Packed target(outputs);
    source.pack();
    exchange(*engine_, source, sizes_of(inputs), target, sizes_of(outputs), call);
    target.unpack();
  });
}

WorkPtr ProcessGroup::all_to_all_single(const Tensor& output, const Tensor& input, std::span<const int64_t> output_rows,
                                        std::span<const int64_t> input_rows, Milliseconds timeout) {
  const char* const name = "all_to_all_single";
  check_source(name, "input", input);
  check_target(name, "output", output);
  check_same_dtype(name, "output", output, input.dtype());
  const auto in_bytes = part_sizes(name, "input", input, input_rows, size_);
  const auto out_bytes = part_sizes(name, "output", output, output_rows, size_);
  return enqueue({name, concat(", ", name_of(input.dtype()))}, timeout, [=, this](const EngineCall& call) {
    const Packed source(input);
    Packed target(output);
    if (overlap(input, output) != Overlap::kNo) target.own();
    source.pack();
    exchange(*engine_, source, in_bytes, target, out_bytes, call);
    target.unpack();
  });
}

}  // namespace tensord::distributed
