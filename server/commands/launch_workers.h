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
  std::vector<std::string> program;   // the program and its arguments
  int workers = 1;                    // on this node
  int nodes = 1, node_rank = 0;       // node_rank -1: not known yet
  std::string address = "127.0.0.1";  // of node 0
  uint16_t port = 0;                  // on node 0: the launchers' store with several nodes, otherwise rank 0's; 0: any
  std::string secret;                 // shared secret of launchers and workers
  std::string run_id = "none", role = "default";
  int max_restarts = 0;
  std::chrono::milliseconds monitor_interval{100};
  std::chrono::seconds shutdown_timeout{30}, join_timeout{600};
  std::string prefix = "[${role_name}${rank}]:";  // of each line of output
  std::vector<int> shown_ranks;                   // local ranks whose output is printed; empty: all
  std::string log_dir;                            // directory for copies of the output; empty: none
};

// The ranks of a node's workers, and the address where all workers rendezvous. Nodes may differ in their number of
// workers.
struct LaunchPlace {
  std::string master_address;
  uint16_t master_port = 0;
  int first_rank = 0;  // of this node
  int world_size = 1;
};

// A report on the worker that failed first.
struct WorkerFailure {
  int rank = 0;
  pid_t pid = 0;
  std::string reason;                  // "exit code 3"
  std::deque<std::string> last_lines;  // of its stderr
};

// The workers of one start on this node. Not thread-safe.
class Workers {
 public:
  // Throws Error if the program cannot be started.
  Workers(const LaunchOptions& options, int restart, const LaunchPlace& place);
  ~Workers();  // kills running workers

  // Forwards the workers' output and reaps those that have exited. Returns after `timeout` or when something happens. A
  // readable `wake` descriptor ends the wait.
  void watch(std::chrono::milliseconds timeout, int wake);
  bool all_ended() const;
  const std::optional<WorkerFailure>& failure() const { return failure_; }
  // Sends `signal` to all workers, and SIGKILL after a grace period.
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

// Runs the program until all workers exit successfully (returns 0) or no restarts are left (returns 1). Termination
// signals are forwarded.
int launch(LaunchOptions options);

}  // namespace tensord::server
