#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "server/executor/requests/recorded_requests.h"

namespace tensord::server::fixtures {

// A folder for files of recorded requests.
class RecordedRequests : public ::testing::Test {
 protected:
  RecordedRequests() : folder_(std::filesystem::temp_directory_path() / ("records" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~RecordedRequests() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& bytes) const {
    const std::string path = (folder_ / "file.requests").string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) out.push_back(entry.path().string());
    return out;
  }

  const std::filesystem::path folder_;
};

inline InferTensor floats(const std::string& name, Dims shape, float first) {
  InferTensor out;
  out.name = name;
  out.shape = shape;
  out.tensor = Tensor::empty(shape, DType::kFloat32);
  for (int64_t i = 0; i < out.tensor.numel(); ++i) out.tensor.data<float>()[i] = first + static_cast<float>(i);
  return out;
}

inline InferTensor words(const std::string& name, std::vector<std::string> strings) {
  InferTensor out;
  out.name = name;
  out.datatype = DataType::kBytes;
  out.shape = {static_cast<int64_t>(strings.size())};
  out.strings = std::move(strings);
  return out;
}

}  // namespace tensord::server::fixtures
