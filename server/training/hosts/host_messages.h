#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"

namespace tensord::server {

// What the daemon that a job was given to (the coordinator) and those that joined it say to each other, as
// protos/hosts.proto describes it. `start` names one start of a job's ranks: what is of another one is of the past.

struct HostInfo {
  std::string name;
  std::string instance;  // of the daemon's process
  std::string version;   // of tensord
  int64_t processes = 0;
  std::string address;  // as the coordinator sees it, in digits
};

// A file that ranks need, by its content; at `path` below the job's folder, or below the data folder.
struct HostFile {
  std::string path;
  bool is_data = false;
  uint64_t size_bytes = 0;
  std::string sha256;
};

struct WelcomeOrder {};
struct PrepareOrder {
  std::string start;
  std::vector<HostFile> files;
  int64_t timeout_seconds = 0;  // after which a coordinator that says nothing counts as gone
};
struct StartOrder {
  std::string start;
  std::vector<int64_t> ranks;
  std::string task;  // as RankTask's text; the host puts in its own paths and limits
};
struct StopOrder {
  std::string start;
};
// The first one only says that the sender lives.
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
  bool is_event = false;  // of file descriptor 3; else of its output
  std::string line;
};
struct EndedReport {
  std::string start;
  int64_t rank = 0;
  std::string how;  // "exit code 3"
};
// It cannot do what it was told.
struct FailedReport {
  std::string start;
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  bool is_disk = false;  // a DiskError
};
using HostReport =
    std::variant<std::monostate, HostInfo, PreparedReport, StartedReport, LineReport, EndedReport, FailedReport>;

// Of a number that another process gave.
inline ErrorCode error_code_of(int64_t number) {
  const bool is_code = number >= 0 && number <= static_cast<int64_t>(ErrorCode::kInternal);
  return is_code ? static_cast<ErrorCode>(number) : ErrorCode::kInternal;
}

}  // namespace tensord::server
