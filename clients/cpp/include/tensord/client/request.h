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
  std::string name;  // empty: by position, in the order of the model's metadata
  Tensor tensor;     // a tensor in a SharedMemory is used in place
  Parameters parameters = {};
};

struct Output {
  std::string name;
  int classes = 0;                  // above 0: the largest values instead, as "VALUE:INDEX[:LABEL]"
  std::optional<Tensor> into = {};  // in a SharedMemory: the output is written there and must fit
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
  std::vector<Output> outputs = {};  // empty: all
  std::string version = {};          // a number or a label; empty: the server's default
  std::string id = {};               // returned with the result
  std::optional<Sequence> sequence = {};
  uint64_t priority = 0;          // 0: the model's default
  uint64_t queue_timeout_us = 0;  // longest time in the queue; 0: the model's default
  // Streams of decoupled models: ask for an empty final response if the last response is not known to be final.
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
  // The only output. Throws FailedPreconditionError if there is none or more than one.
  const Tensor& output() const;
  // The parameter triton_final_response; true if the server does not send it.
  bool is_final() const;
};

}  // namespace tensord::client
