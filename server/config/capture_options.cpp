#include "server/config/capture_options.h"

#include <CLI/CLI.hpp>

namespace tensord::server {

void add_capture_options(CLI::App& app, CaptureOptions& options) {
  app.add_option("--capture-dir", options.folder, "Keep requests in this folder, a file for each model");
  app.add_option("--capture-model", options.models, "Keep only requests to this model; may be given several times")
      ->allow_extra_args(false);
  app.add_option("--capture-rate", options.rate, "Keep one of so many requests to a model")
      ->check(CLI::Range(1u, 1u << 30))
      ->capture_default_str();
  app.add_option("--capture-outputs", options.has_outputs, "Keep the answers with the requests")->capture_default_str();
  app.add_option("--capture-max-requests", options.max_requests, "Most requests that are kept of a model")
      ->capture_default_str();
  app.add_option("--capture-max-bytes", options.max_bytes, "Most bytes that are kept of a model, as 1GB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
}

}  // namespace tensord::server
