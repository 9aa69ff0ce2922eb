#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace tensord::server {

// How this daemon takes part in training jobs that span several nodes.
struct JoinOptions {
  std::string address;     // of the daemon to join; empty: none
  std::string host_name;   // empty: the system's host name
  std::string interface;   // on which other nodes reach this one; empty: that of the route to them
  std::string token_file;  // its contents are sent as `authorization: Bearer`
  bool use_tls = false;    // implied by any of the next four
  std::string root_cert, cert, key, server_name;
  uint64_t cache_bytes = uint64_t{16} << 30;  // for files of the other daemon; 0: no limit

  bool is_wanted() const { return !address.empty(); }
  bool wants_tls() const {
    return use_tls || !root_cert.empty() || !cert.empty() || !key.empty() || !server_name.empty();
  }
};

// Adds the flags to a command. `options` receives the values and must outlive the command.
void add_join_options(CLI::App& app, JoinOptions& options);

// Throws Error{kInvalidArgument} naming the flag.
void validate(const JoinOptions& options);

// Returns --host-name, or the system's host name.
std::string host_name_of(const JoinOptions& options);

}  // namespace tensord::server
