#pragma once

#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/executor/requests/request.h"

namespace tensord::server::fixtures {

// Keeps the responses of one request. Its destructor waits for the final one.
class FakeSink final : public InferSink {
 public:
  void respond(InferResult result, bool is_final) override {
    const std::lock_guard lock(mutex_);
    results_.push_back(std::move(result));
    if (is_final) ++finals_;
    changed_.notify_all();
  }
  bool is_cancelled() const override {
    const std::lock_guard lock(mutex_);
    return is_cancelled_;
  }

  // Called for memory that is kept for the client; empty: not counted.
  std::function<std::shared_ptr<const void>(uint64_t size_bytes)> hold;
  std::shared_ptr<const void> hold_memory(uint64_t size_bytes) override { return hold ? hold(size_bytes) : nullptr; }

  void cancel() {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
  }
  // The last response, once the final one has arrived.
  const InferResult& wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finals_ > 0; });
    return results_.back();
  }
  // Waits for `count` responses.
  void wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return results_.size() >= count; });
  }
  // Call it only after wait().
  const std::vector<InferResult>& results() const { return results_; }
  int finals() const {
    const std::lock_guard lock(mutex_);
    return finals_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<InferResult> results_;
  int finals_ = 0;
  bool is_cancelled_ = false;
};

inline InferTensor float_tensor(const std::string& name, Dims shape, const std::vector<float>& values) {
  InferTensor out;
  out.name = name;
  out.datatype = DataType::kFp32;
  out.tensor = Tensor::empty(shape, DType::kFloat32);
  out.shape = std::move(shape);
  if (!values.empty()) std::memcpy(out.tensor.raw_data(), values.data(), values.size() * sizeof(float));
  return out;
}

inline std::vector<float> values_of(const InferTensor& tensor) {
  const Tensor floats = tensor.tensor.to(DType::kFloat32).contiguous();
  const float* data = floats.data<float>();
  return {data, data + floats.numel()};
}

}  // namespace tensord::server::fixtures
