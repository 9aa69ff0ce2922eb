#include "core/distributed/mpi/mpi_backend.h"

#include <cstdlib>
#include <sstream>

#include "core/base/error.h"
#include "core/base/shared_object.h"
#include "core/distributed/hmac.h"
#include "core/distributed/mpi/module_interface.h"
#include "core/distributed/store/tcp_store.h"

namespace tensord::distributed {
namespace {

// Selected by the launcher: MPICH sets PMI_RANK, Open MPI sets OMPI_COMM_WORLD_RANK.
const char* object_name() {
  return std::getenv("PMI_RANK") && !std::getenv("OMPI_COMM_WORLD_RANK") ? "libtensord_mpich.so" : "libtensord_mpi.so";
}

const MpiModule* open_module(std::string& problem) {
  // MPI opens plugins of its own, which need its symbols.
  void* const found = find_in_object(places_of_object(object_name(), "TENSORD_MPI"), kMpiModuleFunction, true, problem);
  if (!found) return nullptr;
  const MpiModule* const module = reinterpret_cast<MpiModuleFunction>(found)();
  if (std::string(module->interface()) == kMpiInterface) return module;
  problem += ", of another build";
  return nullptr;
}

// Opened once and never closed.
struct OpenedModule {
  std::string problem;
  const MpiModule* const module = open_module(problem);
};
const OpenedModule& opened() {
  static const OpenedModule once;
  return once;
}

const MpiModule& module() {
  if (!opened().module) fail(ErrorCode::kUnimplemented, "mpi: this build has no backend of MPI: ", opened().problem);
  return *opened().module;
}

}  // namespace

bool has_mpi() { return opened().module != nullptr; }

BackendFactory mpi_backends() {
  return [&of = module()](std::shared_ptr<Store> store, const std::string&, int rank, int size, Milliseconds timeout) {
    return of.make_engine(std::move(store), rank, size, timeout);
  };
}

std::unique_ptr<ProcessGroup> make_mpi_world(GroupOptions options) {
  const MpiModule& mpi = module();
  std::shared_ptr<TcpStore> store;
  std::string place;
  if (mpi.rank() == 0) {
    const std::string secret = hex_of(random_bytes(32));
    store = std::make_shared<TcpStore>(TcpStoreOptions{.port = 0, .is_server = true, .token = secret});
    place = concat(mpi.host(), " ", store->port(), " ", secret);
  }
  place = mpi.broadcast_text(place);
  if (mpi.rank() != 0) {
    std::istringstream parts(place);
    std::string host, secret;
    int port = 0;
    check_internal(static_cast<bool>(parts >> host >> port >> secret), "rank 0 did not send the address of its store");
    store = std::make_shared<TcpStore>(TcpStoreOptions{
        .host = host == mpi.host() ? "127.0.0.1" : host, .port = static_cast<uint16_t>(port), .token = secret});
  }
  return std::make_unique<ProcessGroup>(store, "world", mpi.rank(), mpi.size(), mpi_backends(), std::move(options));
}

}  // namespace tensord::distributed
