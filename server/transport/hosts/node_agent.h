#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/config/join_options.h"
#include "server/training/hosts/hosted_ranks.h"

namespace tensord::server {

// Connects to another daemon, reconnects until stopped, and runs ranks for it. Thread-safe.
class NodeAgent {
 public:
  struct Options {
    JoinOptions join;
    std::string version;  // of tensord
    std::string training_folder;
    HostedRanks::Options ranks;
  };
  // Throws Error for files that cannot be read.
  explicit NodeAgent(Options options);
  ~NodeAgent();
  // Ends the ranks that run here.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::server
