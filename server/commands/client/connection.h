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

// Flags that all client commands have, named as those of `python -m tensord`: where the server is, how to be let in,
// and the form of what is printed.
namespace tensord::server {

struct ConnectionOptions {
  std::string address;  // empty: $TENSORD_ADDRESS, else 127.0.0.1:8001
  bool json = false;
  std::optional<double> timeout_secs;
  bool tls = false;
  std::string root_cert, cert, key, server_name;  // any of them: TLS
  std::string token_file;                         // empty: the token is $TENSORD_TOKEN, if there is one
};

// `options` must outlive the parse. `timeout_names` are the flag's names.
void add_connection_options(CLI::App& command, ConnectionOptions& options,
                            const std::string& timeout_names = "--timeout");
// These and --json.
void add_client_options(CLI::App& command, ConnectionOptions& options);

// What --address or $TENSORD_ADDRESS says; empty: neither.
std::string address_of(const ConnectionOptions& options);
bool uses_tls(const ConnectionOptions& options);

// Connects with the first call. Calls take a minute at most, unless --timeout says otherwise. Throws client::Error for
// files that cannot be read.
client::Client connect(const ConnectionOptions& options);
// For calls that take longer: --timeout, else `fallback`, which may be none: no limit.
client::CallOptions call_options(const ConnectionOptions& options,
                                 std::optional<std::chrono::milliseconds> fallback = {});

// Gives the exit code that `run` gives. What goes wrong becomes a CommandError with the exit code for it, of the client
// library's errors with their code behind the message.
int run_client(const std::function<int()>& run);
// Has the command do that.
void on_run(CLI::App& command, int* exit_code, std::function<int()> run);

// "NAME=VALUE" texts of a flag that may be repeated. Throws client::InvalidArgumentError that says the form.
std::map<std::string, std::string> pairs(const std::vector<std::string>& texts, const std::string& flag,
                                         const std::string& form);

// The whole of a file. Throws client::NotFoundError, or client::InvalidArgumentError when it is larger than
// `max_bytes`.
std::string read_file(const std::string& path, uint64_t max_bytes);

}  // namespace tensord::server
