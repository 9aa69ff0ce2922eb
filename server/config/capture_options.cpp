#include "server/config/capture_options.h"

#include <CLI/CLI.hpp>

namespace tensord::server {

void add_capture_options(CLI::App& app, CaptureOptions& options) {
  app.add_option("--capture-dir", options.folder, "Capture requests in this folder, in a file for each model");
  app.add_option("--capture-model", options.models, "Capture only requests to this model; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--capture-rate", options.rate, "Capture one in this many requests to a model")
      ->check(CLI::Range(1u, 1u << 30))
      ->capture_default_str();
  app.add_option("--capture-outputs", options.has_outputs, "Capture the responses with the requests")
      ->capture_default_str();
  app.add_option("--capture-max-requests", options.max_requests, "Maximum of captured requests for each model")
      ->capture_default_str();
  app.add_option("--capture-max-bytes", options.max_bytes,
                 "Maximum size of captured requests for each model, such as 1GB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
}

}  // namespace tensord::server
