#pragma once

#include <tensord/client/client.h>

#include <optional>
#include <string>
#include <vector>

#include "server/commands/input_text.h"

namespace tensord::server {

// The metadata of a model, fetched on first use.
class ModelSignature {
 public:
  // `server` must outlive this object. If `batch` is above 0, it replaces a dynamic first size of inputs.
  ModelSignature(client::Client& server, std::string model, std::string version, int64_t batch = 0)
      : server_(server), model_(std::move(model)), version_(std::move(version)), batch_(batch) {}

  const client::ModelMetadata& get();
  // Returns null if the model has no such input.
  const client::TensorMetadata* input(const std::string& name);

 private:
  client::Client& server_;
  const std::string model_, version_;
  const int64_t batch_;
  std::optional<client::ModelMetadata> metadata_;
};

// Builds the inputs from the values of --input. With `random_rest`, the model's other inputs get random values, with 1
// for dynamic sizes. Throws client::Error, or Error for files, that names the input.
std::vector<client::Input> read_inputs(const std::vector<std::string>& texts, bool random_rest,
                                       ModelSignature& signature);

}  // namespace tensord::server
