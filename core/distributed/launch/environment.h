#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/distributed/group/process_group.h"
#include "core/distributed/store/store.h"

namespace tensord::distributed {

// What a launcher tells a worker, in torchrun's variables. Without RANK, ranks and sizes come from the variables of
// mpirun (Open MPI, MPICH) or Slurm.
struct WorkerEnvironment {
  int rank = 0, world_size = 1;
  int local_rank = 0, local_world_size = 1;
  std::string master_addr;
  uint16_t master_port = 0;
  int restart = 0;  // how many times the workers were restarted

  // Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and, if set, LOCAL_RANK, LOCAL_WORLD_SIZE and
  // TORCHELASTIC_RESTART_COUNT. Under Slurm, ranks meet on the first node, at a port derived from the job id. Throws
  // Error{kInvalidArgument} "environment variable RANK expected, but not set".
  static WorkerEnvironment read();
  static bool is_there();  // some launcher has set a rank
};

// Without RANK: torchrun's variables, derived from those of mpirun or Slurm. For code that reads them itself.
std::map<std::string, std::string> variables_of_other_launchers();
// The first host of a list in Slurm's syntax: "n[10,20-25],login" gives n10. Throws Error{kInvalidArgument}.
std::string first_slurm_host(std::string_view list);
// The first node of this process's Slurm step or job; empty outside Slurm.
std::string first_slurm_node();

// The value of kLaunchSecret, which processes must know to use the store. Empty: not set, and anyone who reaches the
// store's port is admitted.
inline constexpr const char* kLaunchSecret = "TENSORD_LAUNCH_SECRET";
std::string launch_secret();
// Logs a warning if there is no secret and the store is served on an address that other machines may reach.
void warn_of_open_store(const std::string& address);
// The address to listen on for a server that clients reach by this name or address: that address if it belongs to this
// host; all addresses ("") for names, which other hosts may resolve differently.
std::string listen_host_for(const std::string& address);

// The store of all workers. Rank 0 serves it at the master's address. Each restart uses separate keys.
std::shared_ptr<Store> make_store(const WorkerEnvironment& environment, Milliseconds timeout = Store::kDefaultTimeout);
// The group of all workers, over backends of this name (backends_by_name).
std::unique_ptr<ProcessGroup> make_world(const WorkerEnvironment& environment, GroupOptions options = {},
                                         const std::string& backend = "gloo");

}  // namespace tensord::distributed
