#pragma once

#include <tensord/client/client.h>

#include <optional>
#include <string>
#include <vector>

#include "server/commands/input_text.h"

namespace tensord::server {

// What a model says of itself; asked for when first wanted.
class ModelSignature {
 public:
  // `server` must outlive it. Above 0, `batch` is the first size of inputs where any is taken.
  ModelSignature(client::Client& server, std::string model, std::string version, int64_t batch = 0)
      : server_(server), model_(std::move(model)), version_(std::move(version)), batch_(batch) {}

  const client::ModelMetadata& get();
  // Null where the model has no such input.
  const client::TensorMetadata* input(const std::string& name);

 private:
  client::Client& server_;
  const std::string model_, version_;
  const int64_t batch_;
  std::optional<client::ModelMetadata> metadata_;
};

// The inputs that --input texts give. With `random_rest`, those of the model that are not among them get random values,
// 1 where a size is any. Throws client::Error, or Error for files, that names the input.
std::vector<client::Input> read_inputs(const std::vector<std::string>& texts, bool random_rest,
                                       ModelSignature& signature);

}  // namespace tensord::server
