#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/config/model_config.h"
#include "server/executor/model/model.h"

namespace tensord::server {

// A request that every worker runs before the model is ready, so that no client waits for
// plans and packed weights. Its tensors must not be written to.
struct WarmupRequest {
  std::string name;  // for messages
  std::vector<InferTensor> inputs = {};
  std::vector<size_t> input_indices = {};  // of each input: which of the signature it is
  uint32_t count = 1;
  int64_t batch_size = 1;
  bool is_configured = true;  // false: made from the shapes of the configuration; may fail
};

// What `model_warmup` of the configuration asks for, and the requests recorded in the files of its parameter
// "warmup_requests". Without either, and where the configuration gives complete shapes and types: zeros in the batch
// sizes 1, the preferred ones and the largest. Inputs that the server fills itself are zeros. Throws Error when a
// request does not fit the signature, a file is not there, is malformed or has another size, or an ensemble has any.
std::vector<WarmupRequest> make_warmup(const Signature& signature, const ModelConfig& config, const std::string& model);

// The same request with other data: floats in [0, 1), other numbers 0 or 1; texts stay.
WarmupRequest with_random_data(WarmupRequest request);

}  // namespace tensord::server
