#include <CLI/CLI.hpp>

#include <cmath>
#include <iostream>
#include <memory>

#include "core/base/error.h"
#include "server/commands/client/connection.h"
#include "server/commands/client/port_probe.h"
#include "server/commands/commands.h"
#include "server/web/health_client.h"

namespace tensord::server {
namespace {

// Default address: the local metrics port, which needs neither a token nor a certificate.
constexpr const char* kDefaultHealthAddress = "127.0.0.1:8002";
constexpr double kDefaultHealthSeconds = 3;

struct HealthOptions {
  ConnectionOptions connection;
  bool live = false;
  std::string model;
};

std::string path_of(const HealthOptions& options) {
  if (!options.model.empty()) return concat("/v2/models/", options.model, "/ready");
  return options.live ? "/v2/health/live" : "/v2/health/ready";
}

// Asks over gRPC, as the other commands do.
bool ask_grpc(const HealthOptions& options) {
  client::Client server = connect(options.connection);
  if (!options.model.empty()) return server.is_model_ready(options.model);
  return options.live ? server.is_live() : server.is_ready();
}

// Without the http:// and the slash of a URL. gRPC has other addresses with slashes: unix:/a/b, dns:///host:8001.
std::string plain_address(std::string address) {
  constexpr std::string_view kScheme = "http://";
  if (address.starts_with(kScheme)) address = address.substr(kScheme.size());
  if (address.ends_with('/')) address.pop_back();
  const bool is_grpcs = address.starts_with("unix:") || address.find(":///") != address.npos;
  check(is_grpcs || address.find('/') == address.npos, "--address: expected HOST:PORT, or http://HOST:PORT, got '",
        address, "'; with --tls it is of the gRPC port");
  return address;
}

// Tries HTTP first: an HTTP port answers with a status at once, and a gRPC port fails at once.
bool ask_any(HealthOptions options) {
  if (!options.connection.timeout_secs) options.connection.timeout_secs = kDefaultHealthSeconds;
  const std::string given = options.connection.address = plain_address(address_of(options.connection));
  if (uses_tls(options.connection)) {
    if (ask_grpc(options)) return true;
    const PortKind kind = given.empty() ? PortKind::kNothing : probe_port(given);
    if (kind == PortKind::kPlainGrpc || kind == PortKind::kHttp) {
      fail(ErrorCode::kUnavailable, given, ": the server does not speak TLS: leave out --tls and the certificates");
    }
    return false;
  }
  const int seconds = static_cast<int>(std::ceil(*options.connection.timeout_secs));
  try {
    return ask_health(given.empty() ? kDefaultHealthAddress : given, path_of(options), seconds) == 200;
  } catch (const Error& error) {
    const PortKind kind = given.empty() ? PortKind::kNothing : probe_port(given);
    if (kind == PortKind::kTls) {
      fail(error.code(), error.what(), "; the server speaks TLS, perhaps: --tls, or --root-cert FILE");
    }
    if (kind != PortKind::kPlainGrpc) throw;
  }
  return ask_grpc(options);
}

int ask(const HealthOptions& options) {
  const std::string subject = options.model.empty() ? "the daemon" : options.model;
  const std::string state = options.live ? "live" : "ready";
  if (!ask_any(options)) {
    fail(ErrorCode::kUnavailable, subject, " is not ", state,
         options.live ? "" : "; `tensord models` says which models are, and why others are not");
  }
  std::cout << subject << " is " << state << "\n";
  return 0;
}

}  // namespace

void add_health_command(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<HealthOptions>();
  CLI::App* command = app.add_subcommand("health", "Check whether a running daemon is ready: exit code 0 or 1");
  add_connection_options(*command, options->connection, "--timeout,--timeout-secs");
  command->get_option("--address")
      ->description(
          "Where the server listens, for gRPC or HTTP; default $TENSORD_ADDRESS, else 127.0.0.1:8002, its metrics "
          "port");
  CLI::Option* live = command->add_flag("--live", options->live, "Check that it is alive, ready or not");
  command->add_option("--model", options->model, "Check that this model is ready")->excludes(live);
  on_run(*command, exit_code, [options] { return ask(*options); });
}

}  // namespace tensord::server
