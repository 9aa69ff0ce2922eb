#include "core/distributed/launch/environment.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/distributed/backends.h"
#include "core/distributed/store/prefix_store.h"
#include "core/distributed/store/tcp_store.h"

namespace tensord::distributed {
namespace {

// The variables in which launchers store one number: torchrun, Open MPI, MPICH, Slurm.
struct Names {
  const char *torch, *open_mpi, *mpich, *slurm;
};
constexpr Names kRank{"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
constexpr Names kWorldSize{"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
constexpr Names kLocalRank{"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
constexpr Names kLocalSize{"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                           "SLURM_NTASKS_PER_NODE"};
// Port range of Slurm jobs, whose ids are consecutive.
constexpr int kFirstSlurmPort = 15000, kSlurmPorts = 10000;

bool is_set(const char* name) {
  const char* const text = name ? std::getenv(name) : nullptr;
  return text && *text;
}

int number_in(const char* name, int min, int max) {
  const char* const text = std::getenv(name);
  int value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  check(error == std::errc() && stop == end && value >= min && value <= max, "environment variable ", name, ": '", text,
        "' is not a number from ", min, " to ", max);
  return value;
}

int number_of(const char* name, int min, int max, std::optional<int> otherwise = std::nullopt) {
  if (is_set(name)) return number_in(name, min, max);
  check(otherwise.has_value(), "environment variable ", name, " expected, but not set");
  return *otherwise;
}

// torchrun's variables take precedence, because its workers may be started inside tasks of the others.
const char* name_that_is_set(const Names& names) {
  if (is_set(kRank.torch)) return names.torch;
  if (is_set(kRank.open_mpi)) return names.open_mpi;
  if (is_set(kRank.mpich)) return names.mpich;
  return is_set(kRank.slurm) ? names.slurm : names.torch;
}

int number_of(const Names& names, int min, int max, std::optional<int> otherwise = std::nullopt) {
  return number_of(name_that_is_set(names), min, max, otherwise);
}

bool is_of_slurm() { return name_that_is_set(kRank) == kRank.slurm; }

// The same port on all ranks; each step of a job has its own.
int slurm_port() {
  constexpr int kMax = std::numeric_limits<int>::max() / 2;
  const int job = number_of("SLURM_JOB_ID", 0, kMax), step = number_of("SLURM_STEP_ID", 0, kMax, 0);
  return kFirstSlurmPort + (job % kSlurmPorts + step % kSlurmPorts) % kSlurmPorts;
}

}  // namespace

std::string first_slurm_host(std::string_view list) {
  const size_t end = list.find_first_of(",[");
  std::string host(list.substr(0, end));
  if (end != std::string_view::npos && list[end] == '[') {
    const std::string_view rest = list.substr(end + 1);
    const size_t close = rest.find(']');
    check(close != std::string_view::npos, "'", list, "' is not a list of Slurm's hosts");
    host += rest.substr(0, std::min(close, rest.find_first_of(",-")));
    const std::string_view behind = rest.substr(close + 1);
    host += behind.substr(0, behind.find(','));
  }
  check(!host.empty() && host.find_first_of("[]") == std::string::npos, "'", list, "' is not a list of Slurm's hosts");
  return host;
}

std::string first_slurm_node() {
  for (const char* const name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    if (is_set(name)) return first_slurm_host(std::getenv(name));
  }
  return {};
}

std::map<std::string, std::string> variables_of_other_launchers() {
  std::map<std::string, std::string> out;
  for (const Names& names : {kRank, kWorldSize, kLocalRank, kLocalSize}) {
    const char* const name = name_that_is_set(names);
    if (name != names.torch && is_set(name)) out[names.torch] = std::getenv(name);
  }
  if (!is_of_slurm()) return out;
  if (const std::string host = first_slurm_node(); !host.empty()) out["MASTER_ADDR"] = host;
  if (is_set("SLURM_JOB_ID")) out["MASTER_PORT"] = std::to_string(slurm_port());
  return out;
}

bool WorkerEnvironment::is_there() {
  return is_set(kRank.torch) || is_set(kRank.open_mpi) || is_set(kRank.mpich) || is_set(kRank.slurm);
}

WorkerEnvironment WorkerEnvironment::read() {
  constexpr int kMax = std::numeric_limits<int>::max();
  WorkerEnvironment out;
  out.rank = number_of(kRank, 0, kMax - 1);
  out.world_size = number_of(kWorldSize, out.rank + 1, kMax);
  out.local_rank = number_of(kLocalRank, 0, out.world_size - 1, out.rank);
  out.local_world_size = number_of(kLocalSize, out.local_rank + 1, out.world_size, out.world_size);
  if (is_set("MASTER_ADDR")) {
    out.master_addr = std::getenv("MASTER_ADDR");
  } else if (is_of_slurm()) {
    out.master_addr = first_slurm_node();
  }
  check(!out.master_addr.empty(), "environment variable MASTER_ADDR expected, but not set");
  const bool has_slurm_port = !is_set("MASTER_PORT") && is_of_slurm() && is_set("SLURM_JOB_ID");
  out.master_port = static_cast<uint16_t>(has_slurm_port ? slurm_port() : number_of("MASTER_PORT", 1, 65535));
  out.restart = number_of("TORCHELASTIC_RESTART_COUNT", 0, kMax, 0);
  return out;
}

std::string launch_secret() {
  const char* const text = std::getenv(kLaunchSecret);
  return text ? text : "";
}

void warn_of_open_store(const std::string& address) {
  const std::string host = listen_host_for(address);
  if (!launch_secret().empty() || host.starts_with("127.") || host == "::1") return;
  log(LogLevel::kWarning, "anyone who reaches this store can join: TENSORD_LAUNCH_SECRET is not set",
      {{"address", address}});
}

std::string listen_host_for(const std::string& address) {
  if (address == "localhost") return "127.0.0.1";
  in6_addr parsed{};
  const bool is_digits =
      inet_pton(AF_INET, address.c_str(), &parsed) == 1 || inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
  return is_digits ? address : "";
}

std::shared_ptr<Store> make_store(const WorkerEnvironment& environment, Milliseconds timeout) {
  if (environment.rank == 0 && environment.world_size > 1) warn_of_open_store(environment.master_addr);
  auto store = std::make_shared<TcpStore>(TcpStoreOptions{.host = environment.master_addr,
                                                          .port = environment.master_port,
                                                          .is_server = environment.rank == 0,
                                                          .timeout = timeout,
                                                          .token = launch_secret(),
                                                          .listen_host = listen_host_for(environment.master_addr)});
  return std::make_shared<PrefixStore>(concat("start_", environment.restart), std::move(store));
}

std::unique_ptr<ProcessGroup> make_world(const WorkerEnvironment& environment, GroupOptions options,
                                         const std::string& backend) {
  // Checked before the store is opened, so that a rank without this backend does not block the others.
  BackendFactory backends = backends_by_name(backend, environment.master_addr);
  if (options.secret.empty()) options.secret = launch_secret();
  return std::make_unique<ProcessGroup>(make_store(environment), "world", environment.rank, environment.world_size,
                                        std::move(backends), std::move(options));
}

}  // namespace tensord::distributed
