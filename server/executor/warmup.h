#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/config/model_config.h"
#include "server/executor/model.h"

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

// What `model_warmup` of the configuration asks for. Without it, and where the configuration
// gives complete shapes and types: zeros in the batch sizes 1, the preferred ones and the
// largest. Throws Error when a request does not fit the signature, or a file is not there or
// has another size.
std::vector<WarmupRequest> make_warmup(const Signature& signature, const ModelConfig& config, const std::string& model);

}  // namespace tensord::server
