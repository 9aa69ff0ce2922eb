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

}  // namespace

// Every rank tells each other rank how many bytes follow, because backends require matching sizes.
void ProcessGroup::exchange(const Packed& source, const std::vector<size_t>& in_bytes, const Packed& target,
                            const std::vector<size_t>& out_bytes, const BackendCall& call) {
  std::vector<size_t> coming(in_bytes.size());
  all_to_all_on_host(reinterpret_cast<const std::byte*>(in_bytes.data()), reinterpret_cast<std::byte*>(coming.data()),
                     sizeof(size_t), call);
  for (size_t rank = 0; rank < coming.size(); ++rank) {
    check(coming[rank] == out_bytes[rank], "rank ", rank, " sends ", coming[rank], " bytes, expected ",
          out_bytes[rank]);
  }
  // Wait until all ranks have checked that their sizes match.
  barrier_on_host(call);
  backend_->all_to_all(source.data(), in_bytes, target.data(), out_bytes, call);
}

WorkPtr ProcessGroup::all_to_all(std::vector<Tensor> outputs, std::vector<Tensor> inputs, Milliseconds timeout) {
  const char* const name = "all_to_all";
  check(outputs.size() == static_cast<size_t>(size_) && inputs.size() == outputs.size(), name, ": got ", outputs.size(),
        " outputs and ", inputs.size(), " inputs, expected one for each of ", size_, " ranks");
  for (const Tensor& input : inputs) check_source(*backend_, name, "an input", input);
  for (const Tensor& output : outputs) check_target(*backend_, name, "an output", output);
  const Tensor& first = inputs.front();
  for (const Tensor& input : inputs) check_alike(name, "an input", input, first);
  for (const Tensor& output : outputs) check_alike(name, "an output", output, first);
  return enqueue({name, concat(", ", name_of(first.dtype())), first.device()}, timeout,
                 [=, this](const BackendCall& call) {
                   const Packed source(inputs);
                   Packed target(outputs);
                   source.pack();
                   exchange(source, sizes_of(inputs), target, sizes_of(outputs), call);
                   target.unpack();
                 });
}

WorkPtr ProcessGroup::all_to_all_single(const Tensor& output, const Tensor& input, std::span<const int64_t> output_rows,
                                        std::span<const int64_t> input_rows, Milliseconds timeout) {
  const char* const name = "all_to_all_single";
  check_source(*backend_, name, "input", input);
  check_target(*backend_, name, "output", output);
  check_alike(name, "output", output, input);
  const auto in_bytes = part_sizes(name, "input", input, input_rows, size_);
  const auto out_bytes = part_sizes(name, "output", output, output_rows, size_);
  return enqueue({name, concat(", ", name_of(input.dtype())), input.device()}, timeout,
                 [=, this](const BackendCall& call) {
                   const Packed source(input);
                   Packed target(output);
                   if (overlap(input, output) != Overlap::kNo) target.own();
                   source.pack();
                   exchange(source, in_bytes, target, out_bytes, call);
                   target.unpack();
                 });
}

}  // namespace tensord::distributed
