#include "server/transport/grpc/grpc_log.h"

#include <google/protobuf/stubs/common.h>
#include <grpc/support/log.h>

#include <filesystem>

#include "core/base/log.h"

#if GOOGLE_PROTOBUF_VERSION < 4022000  // later versions log through Abseil, without these messages
#include <google/protobuf/stubs/logging.h>
#endif

namespace tensord::server {
namespace {

// Mostly about strings of clients that are not UTF-8; such calls are refused with an error that says so.
void log_protobuf_messages() {
#if GOOGLE_PROTOBUF_VERSION < 4022000
  google::protobuf::SetLogHandler([](google::protobuf::LogLevel, const char* file, int line, const std::string& text) {
    log(LogLevel::kDebug, "protobuf",
        {{"text", text}, {"source", std::filesystem::path(file).filename().string()}, {"line", line}});
  });
#endif
}

}  // namespace

void log_grpc_messages() {
  log_protobuf_messages();
  gpr_set_log_function([](gpr_log_func_args* args) {
    // gRPC's errors are mostly caused by clients: failed handshakes and broken connections.
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
