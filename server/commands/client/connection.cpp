#include "server/commands/client/connection.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/base/error.h"
#include "server/commands/commands.h"

namespace tensord::server {
namespace {

constexpr const char* kDefaultAddress = "127.0.0.1:8001";
constexpr auto kDefaultTimeout = std::chrono::seconds(60);
constexpr double kMaxTimeoutMs = 1e10;
constexpr uint64_t kMaxTokenBytes = 64 << 10;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  return text;
}

std::optional<std::chrono::milliseconds> given_timeout(const ConnectionOptions& options) {
  if (!options.timeout_secs) return std::nullopt;
  if (!(*options.timeout_secs > 0)) throw client::InvalidArgumentError("--timeout: must be above 0");
  return std::chrono::milliseconds(static_cast<int64_t>(std::clamp(*options.timeout_secs * 1e3, 1.0, kMaxTimeoutMs)));
}

int exit_code_of(client::StatusCode code) {
  switch (code) {
    case client::StatusCode::kInvalidArgument: return kExitUsage;
    case client::StatusCode::kUnavailable:
    case client::StatusCode::kDeadlineExceeded: return kExitUnreachable;
    default: return kExitFailed;
  }
}

}  // namespace

void add_connection_options(CLI::App& command, ConnectionOptions& options) {
  command.add_option("--address", options.address,
                     "Where the server listens for gRPC; default $TENSORD_ADDRESS, else 127.0.0.1:8001");
  command.add_option("--timeout", options.timeout_secs, "Seconds that a call may take")->check(CLI::PositiveNumber);
  command.add_flag("--tls", options.tls, "Encrypted; the system's certificates are trusted");
  command.add_option("--root-cert", options.root_cert, "PEM file of those who are trusted instead");
  command.add_option("--cert", options.cert, "PEM file of this client's certificate");
  command.add_option("--key", options.key, "PEM file of its private key");
  command.add_option("--server-name", options.server_name,
                     "Name in the server's certificate, if it is not the address");
  command.add_option("--token-file", options.token_file,
                     "File with the token that is sent as `authorization: Bearer`; default $TENSORD_TOKEN itself");
}

void add_client_options(CLI::App& command, ConnectionOptions& options) {
  add_connection_options(command, options);
  command.add_flag("--json", options.json, "JSON instead of text, one object a line");
}

client::Client connect(const ConnectionOptions& options) {
  // What goes wrong is in the errors of the calls; gRPC would log some of it beside them.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  client::ClientOptions out;
  if (options.tls || !options.root_cert.empty() || !options.cert.empty() || !options.key.empty() ||
      !options.server_name.empty()) {
    out.tls = client::TlsOptions::from_files(options.root_cert, options.cert, options.key);
    out.tls->server_name = options.server_name;
  }
  out.token =
      options.token_file.empty() ? variable("TENSORD_TOKEN") : trimmed(read_file(options.token_file, kMaxTokenBytes));
  out.timeout = given_timeout(options).value_or(kDefaultTimeout);
  std::string address = options.address.empty() ? variable("TENSORD_ADDRESS") : options.address;
  return client::Client(address.empty() ? kDefaultAddress : address, std::move(out));
}

client::CallOptions call_options(const ConnectionOptions& options, std::optional<std::chrono::milliseconds> fallback) {
  const auto given = given_timeout(options);
  return {.timeout = given ? given : fallback, .headers = {}};
}

int run_client(const std::function<int()>& run) {
  try {
    return run();
  } catch (const client::Error& error) {
    throw CommandError(exit_code_of(error.code()), concat(error.what(), " [", client::to_string(error.code()), "]"));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    throw CommandError(kExitUsage, error.what());
  }
}

void on_run(CLI::App& command, int* exit_code, std::function<int()> run) {
  command.callback([exit_code, run = std::move(run)] { *exit_code = run_client(run); });
}

std::map<std::string, std::string> pairs(const std::vector<std::string>& texts, const std::string& flag,
                                         const std::string& form) {
  std::map<std::string, std::string> out;
  for (const std::string& text : texts) {
    const size_t mark = text.find('=');
    if (mark == std::string::npos || mark == 0) {
      throw client::InvalidArgumentError(concat(flag, ": takes ", form, ", got '", text, "'"));
    }
    out[text.substr(0, mark)] = text.substr(mark + 1);
  }
  return out;
}

std::string read_file(const std::string& path, uint64_t max_bytes) {
  std::error_code error;
  // Pipes have no size; they are read up to the limit.
  const bool is_file = std::filesystem::is_regular_file(path, error);
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path, error)) throw client::NotFoundError(path + ": cannot be read");
  if (is_file && std::filesystem::file_size(path, error) > max_bytes) {
    throw client::InvalidArgumentError(concat(path, ": is larger than ", max_bytes, " bytes"));
  }
  std::string bytes;
  char piece[1 << 16];
  while (in.read(piece, sizeof(piece)) || in.gcount() > 0) {
    bytes.append(piece, static_cast<size_t>(in.gcount()));
    if (bytes.size() > max_bytes) {
      throw client::InvalidArgumentError(concat(path, ": is larger than ", max_bytes, " bytes"));
    }
  }
  if (in.bad()) throw client::NotFoundError(path + ": cannot be read");
  return bytes;
}

}  // namespace tensord::server
