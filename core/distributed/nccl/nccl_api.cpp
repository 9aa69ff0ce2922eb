#include "core/distributed/nccl/nccl_api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/shared_object.h"

namespace tensord::distributed {
namespace {

constexpr const char* kName = "libnccl.so.2";

// nvidia/nccl/lib in a Python package folder.
std::filesystem::path in_packages(const std::filesystem::path& packages) {
  return packages / "nvidia/nccl/lib" / kName;
}

void add_environment(const char* variable, std::vector<std::string>& places) {
  const char* const folder = std::getenv(variable);
  if (!folder || !*folder) return;
  std::error_code error;
  for (const auto& python : std::filesystem::directory_iterator(std::filesystem::path(folder) / "lib", error)) {
    if (!python.path().filename().string().starts_with("python")) continue;
    places.push_back(in_packages(python.path() / "site-packages").string());
  }
}

template <class Fn>
void find(void* library, const std::string& place, const char* name, Fn& function) {
  void* const found = dlsym(library, name);
  if (!found) {
    fail(ErrorCode::kUnimplemented, "nccl: ", place, " has no ", name, "; expected NCCL ",
         nccl_version_text(kMinNcclVersion), " or newer");
  }
  function = reinterpret_cast<Fn>(found);
}

void check_version(const NcclApi& api, const std::string& place) {
  int version = 0;
  if (api.get_version(&version) != NcclResult::kSuccess) {
    fail(ErrorCode::kUnimplemented, "nccl: ", place, " does not say its version");
  }
  // Before 2.9, version codes had one digit less: 2.8.4 was 2804.
  if (version >= kMinNcclVersion) return;
  fail(ErrorCode::kUnimplemented, "nccl: ", place, " is version ", nccl_version_text(version), ", expected ",
       nccl_version_text(kMinNcclVersion), " or newer");
}

NcclApi functions_of(void* library, const std::string& place) {
  NcclApi api{};
  find(library, place, "ncclGetVersion", api.get_version);
  check_version(api, place);
  find(library, place, "ncclGetErrorString", api.get_error_string);
  find(library, place, "ncclGetLastError", api.get_last_error);
  find(library, place, "ncclGetUniqueId", api.get_unique_id);
  find(library, place, "ncclCommInitRankConfig", api.comm_init);
  find(library, place, "ncclCommFinalize", api.comm_finalize);
  find(library, place, "ncclCommDestroy", api.comm_destroy);
  find(library, place, "ncclCommAbort", api.comm_abort);
  find(library, place, "ncclCommGetAsyncError", api.comm_async_error);
  find(library, place, "ncclRedOpCreatePreMulSum", api.op_premul_sum);
  find(library, place, "ncclRedOpDestroy", api.op_destroy);
  find(library, place, "ncclGroupStart", api.group_start);
  find(library, place, "ncclGroupEnd", api.group_end);
  find(library, place, "ncclAllReduce", api.all_reduce);
  find(library, place, "ncclReduce", api.reduce);
  find(library, place, "ncclBroadcast", api.broadcast);
  find(library, place, "ncclAllGather", api.all_gather);
  find(library, place, "ncclReduceScatter", api.reduce_scatter);
  find(library, place, "ncclSend", api.send);
  find(library, place, "ncclRecv", api.recv);
  return api;
}

}  // namespace

std::string nccl_version_text(int version) {
  const int scale = version < 10000 ? 1000 : 10000;
  return concat(version / scale, ".", version % scale / 100, ".", version % 100);
}

std::vector<std::string> nccl_places() {
  if (const char* const given = std::getenv("TENSORD_NCCL"); given && *given) return {given};
  std::vector<std::string> places{kName};
  // .../site-packages/tensord/backend: the other packages are beside tensord.
  places.push_back(in_packages(own_folder().parent_path().parent_path()).string());
  add_environment("VIRTUAL_ENV", places);
  add_environment("CONDA_PREFIX", places);
  return places;
}

NcclApi open_nccl(const std::vector<std::string>& places) {
  std::string problem;
  for (const std::string& place : places) {
    if (void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return functions_of(library, place);
    problem += concat(problem.empty() ? "" : "; ", dlerror());
  }
  fail(ErrorCode::kUnimplemented,
       "nccl: NCCL's library is not there (pip install nvidia-nccl-cu12, or TENSORD_NCCL=PATH): ", problem);
}

}  // namespace tensord::distributed
