#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/distributed/launch/child_process.h"

namespace tensord::server {

struct LaunchOptions {
  std::vector<std::string> program;   // with its arguments
  int workers = 1;                    // of this node
  int nodes = 1, node_rank = 0;       // of several nodes -1: not known
  std::string address = "127.0.0.1";  // of the node with rank 0
  uint16_t port = 0;                  // there: where launchers meet (several nodes), or rank 0 listens; 0: any
  std::string secret;                 // that launchers and workers show each other
  std::string run_id = "none", role = "default";
  int max_restarts = 0;
  std::chrono::milliseconds monitor_interval{100};
  std::chrono::seconds shutdown_timeout{30}, join_timeout{600};
  std::string prefix = "[${role_name}${rank}]:";  // of each line
  std::vector<int> shown_ranks;                   // local ranks whose lines are printed; empty: all
  std::string log_dir;                            // lines go there too; empty: nowhere
};

// Where a node's workers are among all, and where these meet. Nodes may have different numbers of workers.
struct LaunchPlace {
  std::string master_address;
  uint16_t master_port = 0;
  int first_rank = 0;  // of this node's workers
  int world_size = 1;
};

// What is to be said of the worker that failed first.
struct WorkerFailure {
  int rank = 0;
  pid_t pid = 0;
  std::string reason;                  // "exit code 3"
  std::deque<std::string> last_lines;  // of its standard error
};

// The workers of one start on this node. Not thread-safe.
class Workers {
 public:
  // Throws Error where the program cannot be run.
  Workers(const LaunchOptions& options, int restart, const LaunchPlace& place);
  ~Workers();  // kills those that run

  // Prints what they wrote, and sees who has ended; returns after `timeout` or when something happens. `wake` is a file
  // descriptor that ends the wait when it can be read.
  void watch(std::chrono::milliseconds timeout, int wake);
  bool all_ended() const;
  const std::optional<WorkerFailure>& failure() const { return failure_; }
  // Ends all: this signal, and SIGKILL once the time is over.
  void stop(int signal);

 private:
  struct Worker;
  void print(Worker& worker, bool is_error, std::string_view line);
  void drain(Worker& worker);
  void send_signal(int signal) const;
  void look_at_ends();

  const LaunchOptions& options_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::optional<WorkerFailure> failure_;
};

// Runs the program until all workers end well: 0, or until there are no restarts left: 1. Signals to end are passed on.
int launch(LaunchOptions options);

}  // namespace tensord::server
