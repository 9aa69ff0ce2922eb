#include "server/commands/client/connection.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/base/error.h"
#include "server/commands/client/port_probe.h"
#include "server/commands/commands.h"

namespace tensord::server {
namespace {

constexpr const char* kDefaultAddress = "127.0.0.1:8001";
constexpr auto kDefaultTimeout = std::chrono::seconds(60);
constexpr double kMaxTimeoutMs = 1e10;
constexpr uint64_t kMaxTokenBytes = 64 << 10;
constexpr const char* kNoAddresses = "empty address list";  // what gRPC says about certificates that it cannot use

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

// Whether gRPC itself made the message, for a connection error. Messages of the server do not contain these words.
bool is_of_connection(const std::string& message) {
  constexpr const char* kWords[] = {"onnect", "ocket", "SSL", "andshake", "recvmsg", "GOAWAY", kNoAddresses};
  return std::ranges::any_of(kWords, [&](const char* word) { return message.find(word) != std::string::npos; });
}

bool says_untrusted(const std::string& message) {
  return message.find("CERTIFICATE_VERIFY_FAILED") != std::string::npos ||
         message.find("certificate verify failed") != std::string::npos;
}

// The address that this process talks to, for explaining connection errors. A command has only one.
struct Connected {
  std::string address;
  bool has_tls = false, has_certificate = false;
};
Connected g_connected;

// Why the server could not be reached in this way: "; the server speaks TLS, …". Empty if unknown.
std::string reason_unreachable(const std::string& message) {
  if (g_connected.has_tls && message.find(kNoAddresses) != std::string::npos) {
    return "; the certificates cannot be used: --cert and --key do not belong together, or a file is not PEM, perhaps";
  }
  if (g_connected.address.empty() || says_untrusted(message)) {
    return g_connected.address.empty() ? "" : "; the server's certificate is not trusted: --root-cert, --server-name";
  }
  switch (probe_port(g_connected.address)) {
    case PortKind::kHttp: return "; an HTTP port is there, and --address takes that of gRPC, 8001";
    case PortKind::kPlainGrpc:
      return g_connected.has_tls ? "; the server does not speak TLS: leave out --tls and the certificates" : "";
    case PortKind::kTls:
      if (!g_connected.has_tls) return "; the server speaks TLS, perhaps: --tls, or --root-cert FILE";
      return g_connected.has_certificate ? ""
                                         : "; the server asks for a client's certificate, perhaps: --cert and --key";
    default: return "";
  }
}

}  // namespace

void add_connection_options(CLI::App& command, ConnectionOptions& options, const std::string& timeout_names) {
  command.add_option("--address", options.address,
                     "Where the server listens for gRPC; default $TENSORD_ADDRESS, else 127.0.0.1:8001");
  command.add_option(timeout_names, options.timeout_secs, "Timeout of a call in seconds")->check(CLI::PositiveNumber);
  command.add_flag("--tls", options.tls, "Use TLS; the system's certificate authorities are trusted");
  command.add_option("--root-cert", options.root_cert, "PEM file of trusted certificate authorities instead");
  command.add_option("--cert", options.cert, "PEM file of this client's certificate");
  command.add_option("--key", options.key, "PEM file of its private key");
  command.add_option("--server-name", options.server_name,
                     "Name in the server's certificate, if it differs from the address");
  command.add_option(
      "--token-file", options.token_file,
      "File with the token that is sent as `authorization: Bearer`; default: the token in $TENSORD_TOKEN");
}

void add_client_options(CLI::App& command, ConnectionOptions& options) {
  add_connection_options(command, options);
  command.add_flag("--json", options.json, "JSON instead of text, one object for each line");
}

std::string address_of(const ConnectionOptions& options) {
  return options.address.empty() ? variable("TENSORD_ADDRESS") : options.address;
}

bool uses_tls(const ConnectionOptions& options) {
  return options.tls || !options.root_cert.empty() || !options.cert.empty() || !options.key.empty() ||
         !options.server_name.empty();
}

client::Client connect(const ConnectionOptions& options) {
  // The calls' errors say what went wrong; gRPC would log it a second time.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  client::ClientOptions out;
  if (uses_tls(options)) {
    out.tls = client::TlsOptions::from_files(options.root_cert, options.cert, options.key);
    out.tls->server_name = options.server_name;
  }
  out.token =
      options.token_file.empty() ? variable("TENSORD_TOKEN") : trimmed(read_file(options.token_file, kMaxTokenBytes));
  out.timeout = given_timeout(options).value_or(kDefaultTimeout);
  const std::string given = address_of(options);
  const std::string address = given.empty() ? kDefaultAddress : given;
  g_connected = {address, uses_tls(options), !options.cert.empty()};
  return client::Client(address, std::move(out));
}

client::CallOptions call_options(const ConnectionOptions& options, std::optional<std::chrono::milliseconds> fallback) {
  const auto given = given_timeout(options);
  return {.timeout = given ? given : fallback, .headers = {}};
}

int run_client(const std::function<int()>& run) {
  try {
    return run();
  } catch (const client::Error& error) {
    const bool is_lost = error.code() == client::StatusCode::kUnavailable && is_of_connection(error.what());
    throw CommandError(exit_code_of(error.code()), concat(error.what(), " [", client::to_string(error.code()), "]",
                                                          is_lost ? reason_unreachable(error.what()) : ""));
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
  // Pipes have no size, so they are read up to the limit.
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
