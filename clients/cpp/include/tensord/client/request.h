#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tensord/client/tensor.h"

namespace tensord::client {

using Parameter = std::variant<bool, int64_t, std::string, double, uint64_t>;
using Parameters = std::map<std::string, Parameter>;

struct Input {
  std::string name;  // empty: by position, as the model's metadata names its inputs
  Tensor tensor;     // one that lies in a SharedMemory is read there
  Parameters parameters = {};
};

struct Output {
  std::string name;
  int classes = 0;                  // above 0: the largest values instead, as "VALUE:INDEX[:LABEL]"
  std::optional<Tensor> into = {};  // of a SharedMemory: written there; its size must be enough
  Parameters parameters = {};
};

struct Sequence {
  std::variant<uint64_t, std::string> id;  // not 0, not empty
  bool is_start = false;
  bool is_end = false;
};

struct Request {
  std::string model;
  std::vector<Input> inputs;
  std::vector<Output> outputs = {};  // none: all
  std::string version = {};          // or a label; empty: the server's choice
  std::string id = {};               // comes back with the result
  std::optional<Sequence> sequence = {};
  uint64_t priority = 0;          // 0: the model's default
  uint64_t queue_timeout_us = 0;  // waiting in the queue; 0: the model's default
  // On streams: a decoupled model's last response may be an empty one that only says it is the last.
  bool wants_final_response = false;
  Parameters parameters = {};
};

struct Result {
  struct NamedTensor {
    std::string name;
    Tensor tensor;
    Parameters parameters;
  };
  std::string model;
  std::string version;
  std::string id;
  std::vector<NamedTensor> outputs;
  Parameters parameters;

  // Throws NotFoundError.
  const Tensor& output(const std::string& name) const;
  // The only output. Throws FailedPreconditionError when there are others or none.
  const Tensor& output() const;
  // The parameter triton_final_response; true where the server says nothing.
  bool is_final() const;
};

}  // namespace tensord::client
