// Collectives of bytes of any size: sizes first, then all bytes in one tensor.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/distributed/group/process_group.h"

namespace tensord::distributed {
namespace {

Tensor as_tensor(const std::string& bytes) {
  const Tensor tensor = Tensor::empty(Dims{static_cast<int64_t>(bytes.size())}, DType::kUInt8);
  if (!bytes.empty()) std::memcpy(tensor.raw_data(), bytes.data(), bytes.size());
  return tensor;
}

std::string as_bytes(const Tensor& tensor) {
  return std::string(static_cast<const char*>(tensor.raw_data()), static_cast<size_t>(tensor.numel()));
}

Tensor number(int64_t value) { return Tensor::scalar<int64_t>(value); }

}  // namespace

std::vector<std::string> ProcessGroup::all_gather_bytes(const std::string& bytes, Milliseconds timeout) {
  const Tensor sizes = Tensor::empty(Dims{size_}, DType::kInt64);
  all_gather_into_tensor(sizes, number(static_cast<int64_t>(bytes.size())), timeout)->wait();
  std::vector<Tensor> parts;
  for (int rank = 0; rank < size_; ++rank)
    parts.push_back(Tensor::empty(Dims{sizes.data<int64_t>()[rank]}, DType::kUInt8));
  all_gather(parts, as_tensor(bytes), timeout)->wait();
  std::vector<std::string> all;
  for (const Tensor& part : parts) all.push_back(as_bytes(part));
  return all;
}

std::string ProcessGroup::broadcast_bytes(const std::string& bytes, int root, Milliseconds timeout) {
  const Tensor size = number(static_cast<int64_t>(bytes.size()));
  broadcast(size, root, timeout)->wait();
  const Tensor all = rank_ == root ? as_tensor(bytes) : Tensor::empty(Dims{size.item_int()}, DType::kUInt8);
  broadcast(all, root, timeout)->wait();
  return as_bytes(all);
}

// Parts of one size: the largest. Who sends little to the root alone has no list of sizes to agree on.
std::vector<std::string> ProcessGroup::gather_bytes(const std::string& bytes, int root, Milliseconds timeout) {
  const Tensor sizes = Tensor::empty(Dims{size_}, DType::kInt64);
  all_gather_into_tensor(sizes, number(static_cast<int64_t>(bytes.size())), timeout)->wait();
  const int64_t* const size = sizes.data<int64_t>();
  const int64_t largest = *std::max_element(size, size + size_);
  std::string padded = bytes;
  padded.resize(static_cast<size_t>(largest));
  std::vector<Tensor> parts;
  for (int rank = 0; rank_ == root && rank < size_; ++rank)
    parts.push_back(Tensor::empty(Dims{largest}, DType::kUInt8));
  gather(parts, as_tensor(padded), root, timeout)->wait();
  std::vector<std::string> all;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    all.push_back(as_bytes(parts[rank]).substr(0, static_cast<size_t>(size[rank])));
  }
  return all;
}

std::string ProcessGroup::scatter_bytes(std::span<const std::string> bytes, int root, Milliseconds timeout) {
  check_rank("scatter_bytes", "the root", root);
  check(rank_ != root || bytes.size() == static_cast<size_t>(size_), "scatter_bytes: got ", bytes.size(),
        " texts, expected one for each of ", size_, " ranks");
  const Tensor sizes = Tensor::empty(Dims{size_}, DType::kInt64);
  for (int rank = 0; rank_ == root && rank < size_; ++rank) {
    sizes.data<int64_t>()[rank] = static_cast<int64_t>(bytes[static_cast<size_t>(rank)].size());
  }
  broadcast(sizes, root, timeout)->wait();
  const int64_t* const size = sizes.data<int64_t>();
  const int64_t largest = *std::max_element(size, size + size_);
  std::vector<Tensor> parts;
  for (int rank = 0; rank_ == root && rank < size_; ++rank) {
    std::string padded = bytes[static_cast<size_t>(rank)];
    padded.resize(static_cast<size_t>(largest));
    parts.push_back(as_tensor(padded));
  }
  const Tensor own = Tensor::empty(Dims{largest}, DType::kUInt8);
  scatter(own, parts, root, timeout)->wait();
  return as_bytes(own).substr(0, static_cast<size_t>(size[rank_]));
}

}  // namespace tensord::distributed
