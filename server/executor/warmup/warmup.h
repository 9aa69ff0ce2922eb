#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/config/model_config.h"
#include "server/executor/model/model.h"

namespace tensord::server {

// A request that every worker runs before the model becomes ready, so that clients do not wait for plans and packed
// weights. Its tensors must not be written.
struct WarmupRequest {
  std::string name;  // for error messages
  std::vector<InferTensor> inputs = {};
  std::vector<size_t> input_indices = {};  // by input: its index in the signature
  uint32_t count = 1;
  int64_t batch_size = 1;
  bool is_configured = true;  // false: made from the shapes in the configuration; it may fail
};

// The requests of `model_warmup` in the configuration, and the recorded requests in the files of its parameter
// "warmup_requests". Without either, if the configuration gives complete shapes and types: zeros with batch size 1, the
// preferred batch sizes and the largest one. Inputs that the server computes are zeros. Throws Error if a request does
// not match the signature, a file is missing, malformed or of the wrong size, or the model is an ensemble with warm-up
// requests.
std::vector<WarmupRequest> make_warmup(const Signature& signature, const ModelConfig& config, const std::string& model);

// The same request with random data: floats in [0, 1), other numbers 0 or 1. Strings stay, and with `only_zeros` inputs
// that have any other number.
WarmupRequest with_random_data(WarmupRequest request, bool only_zeros = false);

}  // namespace tensord::server
