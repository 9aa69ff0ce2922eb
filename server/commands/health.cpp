#include <CLI/CLI.hpp>

#include <iostream>

#include "core/base/error.h"
#include "server/commands/commands.h"
#include "server/web/health_client.h"

namespace tensord::server {
namespace {

struct HealthOptions {
  std::string address = "127.0.0.1:8002";
  bool live = false;
  std::string model;
  int timeout_secs = 3;
};

std::string path_of(const HealthOptions& options) {
  if (!options.model.empty()) return concat("/v2/models/", options.model, "/ready");
  return options.live ? "/v2/health/live" : "/v2/health/ready";
}

void ask(const HealthOptions& options) {
  const int status = ask_health(options.address, path_of(options), options.timeout_secs);
  const std::string subject = options.model.empty() ? "the daemon" : options.model;
  const std::string state = options.live ? "live" : "ready";
  if (status != 200) {
    fail(ErrorCode::kUnavailable, subject, " is not ", state, " (", status, ")",
         options.live ? "" : "; `tensord models` says which models are, and why others are not");
  }
  std::cout << subject << " is " << state << "\n";
}

}  // namespace

void add_health_command(CLI::App& app) {
  static HealthOptions options;
  CLI::App* command = app.add_subcommand("health", "Asks a running daemon whether it is ready: exit code 0 or 1");
  command->add_option("--address", options.address, "Of the daemon's metrics port")->capture_default_str();
  CLI::Option* live = command->add_flag("--live", options.live, "Whether it is alive, ready or not");
  command->add_option("--model", options.model, "Whether this model is ready")->excludes(live);
  command->add_option("--timeout-secs", options.timeout_secs, "Time to answer")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->callback([] { ask(options); });
}

}  // namespace tensord::server
