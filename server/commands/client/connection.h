#pragma once

#include <tensord/client/client.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

// Flags of all client commands, named as in `python -m tensord`: the server's address, the credentials and the output
// format.
namespace tensord::server {

struct ConnectionOptions {
  std::string address;  // empty: $TENSORD_ADDRESS, else 127.0.0.1:8001
  bool json = false;
  std::optional<double> timeout_secs;
  bool tls = false;
  std::string root_cert, cert, key, server_name;  // any of them turns on TLS
  std::string token_file;                         // empty: $TENSORD_TOKEN, if set
};

// `options` must outlive the parse. `timeout_names` are the names of the timeout flag.
void add_connection_options(CLI::App& command, ConnectionOptions& options,
                            const std::string& timeout_names = "--timeout");
// Adds the connection options and --json.
void add_client_options(CLI::App& command, ConnectionOptions& options);

// --address or $TENSORD_ADDRESS; empty if neither is set.
std::string address_of(const ConnectionOptions& options);
bool uses_tls(const ConnectionOptions& options);

// Makes a client that connects on its first call. Calls time out after a minute unless --timeout is given. Throws
// client::Error for files that cannot be read.
client::Client connect(const ConnectionOptions& options);
// Options for calls that take longer: --timeout, or else `fallback`; no limit if both are unset.
client::CallOptions call_options(const ConnectionOptions& options,
                                 std::optional<std::chrono::milliseconds> fallback = {});

// Calls `run` and returns its exit code. Errors become a CommandError with the matching exit code; those of the client
// library keep their code after the message.
int run_client(const std::function<int()>& run);
// Runs `run` when the command is given.
void on_run(CLI::App& command, int* exit_code, std::function<int()> run);

// Parses the "NAME=VALUE" values of a repeatable flag. Throws client::InvalidArgumentError with the expected form.
std::map<std::string, std::string> pairs(const std::vector<std::string>& texts, const std::string& flag,
                                         const std::string& form);

// Reads a whole file. Throws client::NotFoundError, or client::InvalidArgumentError if it is larger than `max_bytes`.
std::string read_file(const std::string& path, uint64_t max_bytes);

}  // namespace tensord::server
