#pragma once

#include <cstdint>
#include <string>

#include "server/training/jobs/job_status.h"

namespace tensord::server {

// The task of a rank's process, a line of JSON on its standard input.
struct RankTask {
  JobStatus job;
  std::string folder;        // of the job; contains the checkpoint to resume from
  std::string base_archive;  // like the next ones, a path on the rank's host
  std::string data_folder;
  std::string result;  // written by rank 0: the model to publish
  int rank = 0;
  int threads = 1;
  uint64_t memory_bytes = 0;  // 0: no limit
  int nice = 0;
  std::string address = "127.0.0.1";     // where it listens for other ranks, in digits
  std::string store_host = "127.0.0.1";  // where the ranks meet, in digits
  uint16_t store_port = 0;
  std::string secret;       // of this start
  int64_t first_batch = 0;  // next expected batch of streamed data
};

std::string to_text(const RankTask& task);  // without a newline
// Throws Error{kInvalidArgument} naming the field.
RankTask rank_task_from_text(const std::string& text);

}  // namespace tensord::server
