#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace tensord::server {

// How this daemon takes part in training jobs of several hosts.
struct JoinOptions {
  std::string address;     // of the daemon that it joins; empty: none
  std::string host_name;   // empty: the system's
  std::string interface;   // by which other hosts reach this one; empty: the one of the route to them
  std::string token_file;  // its text is sent as `authorization: Bearer`
  bool use_tls = false;    // also with any of the next four
  std::string root_cert, cert, key, server_name;
  uint64_t cache_bytes = uint64_t{16} << 30;  // of files from the other daemon; 0: no limit

  bool is_wanted() const { return !address.empty(); }
  bool wants_tls() const {
    return use_tls || !root_cert.empty() || !cert.empty() || !key.empty() || !server_name.empty();
  }
};

// Adds the flags to a command; the values go into `options`, which must outlive it.
void add_join_options(CLI::App& app, JoinOptions& options);

// Throws Error{kInvalidArgument} naming the flag.
void validate(const JoinOptions& options);

// --host-name, or the system's name.
std::string host_name_of(const JoinOptions& options);

}  // namespace tensord::server
