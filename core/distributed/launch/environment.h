#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/distributed/group/process_group.h"
#include "core/distributed/store/store.h"

namespace tensord::distributed {

// What a launcher tells a worker, by torchrun's variables; ranks and sizes also by those of mpirun (Open MPI, MPICH)
// and Slurm, where there is no RANK.
struct WorkerEnvironment {
  int rank = 0, world_size = 1;
  int local_rank = 0, local_world_size = 1;
  std::string master_addr;
  uint16_t master_port = 0;
  int restart = 0;  // how many times the workers were started before

  // RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and, where they are, LOCAL_RANK, LOCAL_WORLD_SIZE and
  // TORCHELASTIC_RESTART_COUNT. Slurm's ranks meet on the first of its nodes, at a port by the job's number. Throws
  // Error{kInvalidArgument} "environment variable RANK expected, but not set".
  static WorkerEnvironment read();
  static bool is_there();  // some launcher says a rank
};

// torchrun's variables as mpirun or Slurm say them, where there is no RANK: for who reads them by itself.
std::map<std::string, std::string> variables_of_other_launchers();
// The first host of a list in Slurm's way: "n[10,20-25],login" has n10. Throws Error{kInvalidArgument}.
std::string first_slurm_host(std::string_view list);
// The first node of the Slurm step, or job, that this process is of; empty: of none.
std::string first_slurm_node();

// What the variable kLaunchSecret says: who meets over a store has to know it. Empty: there is none, and whoever
// reaches the store's port is let in.
inline constexpr const char* kLaunchSecret = "TENSORD_LAUNCH_SECRET";
std::string launch_secret();
// Logs that there is none, where a store is served on an address that other machines may reach.
void warn_of_open_store(const std::string& address);
// Where a server listens that is to be reached by this name or address: there alone, where that is an address of this
// host; all addresses ("") for names that other hosts may resolve otherwise.
std::string listen_host_for(const std::string& address);

// The store of all workers: rank 0 serves it at the master's address; keys of each start of the workers are apart.
std::shared_ptr<Store> make_store(const WorkerEnvironment& environment, Milliseconds timeout = Store::kDefaultTimeout);
// The group of all workers, over backends of this name (backends_by_name).
std::unique_ptr<ProcessGroup> make_world(const WorkerEnvironment& environment, GroupOptions options = {},
                                         const std::string& backend = "gloo");

}  // namespace tensord::distributed
