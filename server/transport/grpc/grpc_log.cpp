#include "server/transport/grpc/grpc_log.h"

#include <grpc/support/log.h>

#include <filesystem>

#include "core/base/log.h"

namespace tensord::server {

void log_grpc_messages() {
  gpr_set_log_function([](gpr_log_func_args* args) {
    // What gRPC calls an error is mostly a client's fault: a handshake that fails, a connection that breaks.
    const LogLevel level = args->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kWarning
                           : args->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo
                                                                     : LogLevel::kDebug;
    log(level, "gRPC",
        {{"text", args->message},
         {"source", std::filesystem::path(args->file).filename().string()},
         {"line", args->line}});
  });
}

}  // namespace tensord::server
