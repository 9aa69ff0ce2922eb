#include "server/config/join_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "core/base/error.h"

namespace tensord::server {

void add_join_options(CLI::App& app, JoinOptions& options) {
  app.add_option("--join", options.address,
                 "HOST:PORT of a daemon whose multi-host training jobs this one joins (requires --training-dir)");
  app.add_option("--host-name", options.host_name, "This host's name in such jobs; default: the system's host name");
  app.add_option("--distributed-interface", options.interface,
                 "Network interface, by its exact name, through which other hosts reach this one's processes; default: "
                 "that of the route to them");
  app.add_option("--join-token-file", options.token_file, "File with the token for the joined daemon");
  app.add_flag("--join-tls", options.use_tls, "Join over TLS; the system's certificate authorities are trusted");
  app.add_option("--join-root-cert", options.root_cert, "PEM file of trusted certificate authorities instead");
  app.add_option("--join-cert", options.cert, "PEM file of this daemon's certificate for the one it joins");
  app.add_option("--join-key", options.key, "PEM file of its private key");
  app.add_option("--join-server-name", options.server_name,
                 "Name in the joined daemon's certificate, if it differs from the address");
  app.add_option("--join-cache", options.cache_bytes,
                 "Maximum size of the other daemon's models and data that are cached in --training-dir, such as 16GB; "
                 "0: no limit")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
}

void validate(const JoinOptions& options) {
  const bool has_more = !options.token_file.empty() || options.wants_tls();
  check(options.is_wanted() || !has_more, "--join: needed with other flags that begin so");
  check(options.cert.empty() == options.key.empty(), "--join-cert and --join-key: one needs the other");
}

std::string host_name_of(const JoinOptions& options) {
  if (!options.host_name.empty()) return options.host_name;
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace tensord::server
