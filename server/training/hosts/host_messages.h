#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"

namespace tensord::server {

// Messages between the daemon that has a job (the coordinator) and the daemons that joined it, as described in
// protos/hosts.proto. `start` identifies one start of a job's ranks; messages of another start are outdated.

struct HostInfo {
  std::string name;
  std::string instance;  // identifies the daemon's process
  std::string version;   // of tensord
  int64_t processes = 0;
  std::string address;  // as the coordinator sees it, numeric
};

// A file that ranks need, identified by content; at `path` below the job's folder or the data folder. Or a folder of
// images, of which each host has a copy of its own (fingerprint_of_images).
struct HostFile {
  std::string path;
  bool is_data = false;
  uint64_t size_bytes = 0;
  std::string sha256;
  bool is_folder = false;
};

struct WelcomeOrder {};
struct PrepareOrder {
  std::string start;
  std::vector<HostFile> files;
  int64_t timeout_seconds = 0;  // a coordinator that is silent for longer counts as lost
};
struct StartOrder {
  std::string start;
  std::vector<int64_t> ranks;
  std::string task;  // RankTask as text; the host sets its own paths and limits
};
struct StopOrder {
  std::string start;
};
// monostate: keep-alive.
using HostOrder = std::variant<std::monostate, WelcomeOrder, PrepareOrder, StartOrder, StopOrder>;

struct PreparedReport {
  std::string start;
};
struct StartedReport {
  std::string start;
  int64_t rank = 0, pid = 0;
};
struct LineReport {
  std::string start;
  int64_t rank = 0;
  bool is_event = false;  // from file descriptor 3; otherwise from its output
  std::string line;
};
struct EndedReport {
  std::string start;
  int64_t rank = 0;
  std::string how;  // "exit code 3"
};
// The host cannot do what it was ordered to.
struct FailedReport {
  std::string start;
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  bool is_disk = false;  // a DiskError
};
using HostReport =
    std::variant<std::monostate, HostInfo, PreparedReport, StartedReport, LineReport, EndedReport, FailedReport>;

// Converts a number received from another process.
inline ErrorCode error_code_of(int64_t number) {
  const bool is_code = number >= 0 && number <= static_cast<int64_t>(ErrorCode::kInternal);
  return is_code ? static_cast<ErrorCode>(number) : ErrorCode::kInternal;
}

}  // namespace tensord::server
