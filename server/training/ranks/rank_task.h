#pragma once

#include <cstdint>
#include <string>

#include "server/training/jobs/job_status.h"

namespace tensord::server {

// What a rank's process is told on its standard input, as a line of JSON.
struct RankTask {
  JobStatus job;
  std::string folder;        // of the job; where it finds the checkpoint that it goes on from
  std::string base_archive;  // as these: paths of the rank's own host
  std::string data_folder;
  std::string result;  // where rank 0 writes what is to be published
  int rank = 0;
  int threads = 1;
  uint64_t memory_bytes = 0;  // 0: no limit
  int nice = 0;
  std::string address = "127.0.0.1";     // where it listens for other ranks, in digits
  std::string store_host = "127.0.0.1";  // where the ranks meet, in digits
  uint16_t store_port = 0;
  std::string secret;       // of this start
  int64_t first_batch = 0;  // that comes, where the data is streamed
};

std::string to_text(const RankTask& task);  // without the end of line
// Throws Error{kInvalidArgument} naming the field.
RankTask rank_task_from_text(const std::string& text);

}  // namespace tensord::server
