// Collectives of byte strings of any size: sizes first, then all bytes in one tensor, in memory that the backend
// supports.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/distributed/group/process_group.h"
#include "core/tensor/device_copy.h"

namespace tensord::distributed {
namespace {

Tensor as_tensor(const std::string& bytes, Device device) {
  const Tensor tensor = Tensor::empty(Dims{static_cast<int64_t>(bytes.size())}, DType::kUInt8);
  if (!bytes.empty()) std::memcpy(tensor.raw_data(), bytes.data(), bytes.size());
  return tensor.to(device);
}

std::string as_bytes(const Tensor& tensor) {
  const Tensor own = host_copy(tensor);
  return std::string(static_cast<const char*>(own.raw_data()), static_cast<size_t>(own.numel()));
}

Tensor bytes_of_size(int64_t size, Device device) { return Tensor::empty(Dims{size}, DType::kUInt8, device); }

std::vector<int64_t> numbers_of(const Tensor& tensor) {
  const Tensor own = host_copy(tensor);
  return {own.data<int64_t>(), own.data<int64_t>() + own.numel()};
}

std::string padded(std::string bytes, int64_t size) {
  bytes.resize(static_cast<size_t>(size));
  return bytes;
}

}  // namespace

std::vector<int64_t> ProcessGroup::gather_sizes(const std::string& bytes, Milliseconds timeout) {
  const Tensor sizes = Tensor::empty(Dims{size_}, DType::kInt64, device());
  const Tensor own = Tensor::scalar<int64_t>(static_cast<int64_t>(bytes.size()));
  all_gather_into_tensor(sizes, own.to(device()), timeout)->wait();
  return numbers_of(sizes);
}

std::vector<std::string> ProcessGroup::all_gather_bytes(const std::string& bytes, Milliseconds timeout) {
  std::vector<Tensor> parts;
  for (const int64_t size : gather_sizes(bytes, timeout)) parts.push_back(bytes_of_size(size, device()));
  all_gather(parts, as_tensor(bytes, device()), timeout)->wait();
  std::vector<std::string> all;
  for (const Tensor& part : parts) all.push_back(as_bytes(part));
  return all;
}

std::string ProcessGroup::broadcast_bytes(const std::string& bytes, int root, Milliseconds timeout) {
  const Tensor size = Tensor::scalar<int64_t>(static_cast<int64_t>(bytes.size())).to(device());
  broadcast(size, root, timeout)->wait();
  const Tensor all = rank_ == root ? as_tensor(bytes, device()) : bytes_of_size(size.item_int(), device());
  broadcast(all, root, timeout)->wait();
  return as_bytes(all);
}

// Every part is padded to the largest one, because only the root would need the list of sizes.
std::vector<std::string> ProcessGroup::gather_bytes(const std::string& bytes, int root, Milliseconds timeout) {
  const std::vector<int64_t> sizes = gather_sizes(bytes, timeout);
  const int64_t largest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<Tensor> parts;
  for (int rank = 0; rank_ == root && rank < size_; ++rank) parts.push_back(bytes_of_size(largest, device()));
  gather(parts, as_tensor(padded(bytes, largest), device()), root, timeout)->wait();
  std::vector<std::string> all;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    all.push_back(as_bytes(parts[rank]).substr(0, static_cast<size_t>(sizes[rank])));
  }
  return all;
}

std::string ProcessGroup::scatter_bytes(std::span<const std::string> bytes, int root, Milliseconds timeout) {
  check_rank("scatter_bytes", "the root", root);
  check(rank_ != root || bytes.size() == static_cast<size_t>(size_), "scatter_bytes: got ", bytes.size(),
        " texts, expected one for each of ", size_, " ranks");
  Tensor sizes = Tensor::empty(Dims{size_}, DType::kInt64);
  for (int rank = 0; rank_ == root && rank < size_; ++rank) {
    sizes.data<int64_t>()[rank] = static_cast<int64_t>(bytes[static_cast<size_t>(rank)].size());
  }
  sizes = sizes.to(device());
  broadcast(sizes, root, timeout)->wait();
  const std::vector<int64_t> size = numbers_of(sizes);
  const int64_t largest = *std::max_element(size.begin(), size.end());
  std::vector<Tensor> parts;
  for (int rank = 0; rank_ == root && rank < size_; ++rank) {
    parts.push_back(as_tensor(padded(bytes[static_cast<size_t>(rank)], largest), device()));
  }
  const Tensor own = bytes_of_size(largest, device());
  scatter(own, parts, root, timeout)->wait();
  return as_bytes(own).substr(0, static_cast<size_t>(size[static_cast<size_t>(rank_)]));
}

}  // namespace tensord::distributed
