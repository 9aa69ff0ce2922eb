#include "core/distributed/launch/environment.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/distributed/engines.h"
#include "core/distributed/store/prefix_store.h"
#include "core/distributed/store/tcp_store.h"

namespace tensord::distributed {
namespace {

// What one launcher calls a number: torchrun, Open MPI, MPICH, Slurm.
struct Names {
  const char *torch, *open_mpi, *mpich, *slurm;
};
constexpr Names kRank{"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
constexpr Names kWorldSize{"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
constexpr Names kLocalRank{"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
constexpr Names kLocalSize{"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", nullptr};

bool is_set(const char* name) {
  const char* const text = name ? std::getenv(name) : nullptr;
  return text && *text;
}

int number_in(const char* name, int least, int most) {
  const char* const text = std::getenv(name);
  int value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  check(error == std::errc() && stop == end && value >= least && value <= most, "environment variable ", name, ": '",
        text, "' is no number from ", least, " to ", most);
  return value;
}

int number_of(const char* name, int least, int most, std::optional<int> otherwise = std::nullopt) {
  if (is_set(name)) return number_in(name, least, most);
  check(otherwise.has_value(), "environment variable ", name, " expected, but not set");
  return *otherwise;
}

// torchrun's variables come first: its workers may be started inside of the others' tasks.
int number_of(const Names& names, int least, int most, std::optional<int> otherwise = std::nullopt) {
  if (is_set(kRank.torch)) return number_of(names.torch, least, most, otherwise);
  if (is_set(kRank.open_mpi)) return number_of(names.open_mpi, least, most, otherwise);
  if (is_set(kRank.mpich)) return number_of(names.mpich, least, most, otherwise);
  if (is_set(kRank.slurm) && names.slurm) return number_of(names.slurm, least, most, otherwise);
  return number_of(names.torch, least, most, otherwise);
}

}  // namespace

bool WorkerEnvironment::is_there() {
  return is_set(kRank.torch) || is_set(kRank.open_mpi) || is_set(kRank.mpich) || is_set(kRank.slurm);
}

WorkerEnvironment WorkerEnvironment::read() {
  constexpr int kMost = std::numeric_limits<int>::max();
  WorkerEnvironment out;
  out.rank = number_of(kRank, 0, kMost - 1);
  out.world_size = number_of(kWorldSize, out.rank + 1, kMost);
  out.local_rank = number_of(kLocalRank, 0, out.world_size - 1, out.rank);
  out.local_world_size = number_of(kLocalSize, out.local_rank + 1, out.world_size, out.world_size);
  check(is_set("MASTER_ADDR"), "environment variable MASTER_ADDR expected, but not set");
  out.master_addr = std::getenv("MASTER_ADDR");
  out.master_port = static_cast<uint16_t>(number_of("MASTER_PORT", 1, 65535));
  out.restart = number_of("TORCHELASTIC_RESTART_COUNT", 0, kMost, 0);
  return out;
}

std::shared_ptr<Store> make_store(const WorkerEnvironment& environment, Milliseconds timeout) {
  auto store = std::make_shared<TcpStore>(TcpStoreOptions{.host = environment.master_addr,
                                                          .port = environment.master_port,
                                                          .is_server = environment.rank == 0,
                                                          .timeout = timeout});
  return std::make_shared<PrefixStore>(concat("start_", environment.restart), std::move(store));
}

std::unique_ptr<ProcessGroup> make_world(const WorkerEnvironment& environment, GroupOptions options,
                                         const std::string& backend) {
  // Before the store: who has no such engine holds nobody up.
  EngineFactory engines = engines_by_name(backend, environment.master_addr);
  return std::make_unique<ProcessGroup>(make_store(environment), "world", environment.rank, environment.world_size,
                                        std::move(engines), std::move(options));
}

}  // namespace tensord::distributed
