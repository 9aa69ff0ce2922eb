#include "core/distributed/launch/environment.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/distributed/gloo/gloo_engine.h"
#include "core/distributed/store/prefix_store.h"
#include "core/distributed/store/tcp_store.h"

namespace tensord::distributed {
namespace {

int number_of(const char* name, int least, int most, std::optional<int> otherwise = std::nullopt) {
  const char* const text = std::getenv(name);
  if (!text || !*text) {
    check(otherwise.has_value(), "environment variable ", name, " expected, but not set");
    return *otherwise;
  }
  int value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  check(error == std::errc() && stop == end && value >= least && value <= most, "environment variable ", name, ": '",
        text, "' is no number from ", least, " to ", most);
  return value;
}

}  // namespace

bool WorkerEnvironment::is_there() { return std::getenv("RANK") != nullptr; }

WorkerEnvironment WorkerEnvironment::read() {
  constexpr int kMost = std::numeric_limits<int>::max();
  WorkerEnvironment out;
  out.rank = number_of("RANK", 0, kMost - 1);
  out.world_size = number_of("WORLD_SIZE", out.rank + 1, kMost);
  out.local_rank = number_of("LOCAL_RANK", 0, out.world_size - 1, out.rank);
  out.local_world_size = number_of("LOCAL_WORLD_SIZE", out.local_rank + 1, out.world_size, out.world_size);
  const char* const address = std::getenv("MASTER_ADDR");
  check(address && *address, "environment variable MASTER_ADDR expected, but not set");
  out.master_addr = address;
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

std::unique_ptr<ProcessGroup> make_world(const WorkerEnvironment& environment, GroupOptions options) {
  return std::make_unique<ProcessGroup>(make_store(environment), "world", environment.rank, environment.world_size,
                                        gloo_engines({.address = own_address(environment.master_addr)}),
                                        std::move(options));
}

}  // namespace tensord::distributed
