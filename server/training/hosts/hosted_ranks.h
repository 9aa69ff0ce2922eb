#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "server/training/hosts/file_cache.h"
#include "server/training/hosts/host_messages.h"

namespace tensord::server {

// What this daemon does for the coordinator that it joined: fetches files, starts ranks as child processes, and
// forwards what they report. One start at a time; everything ends with this object. take() must be called by one
// thread.
class HostedRanks {
 public:
  struct Options {
    std::filesystem::path folder;  // for the files of ranks, one folder per start
    std::string data_folder;       // the server's data folder: files in it are not fetched; empty: none
    std::string program = "/proc/self/exe";
    std::string host;  // of this host
    std::string
        interface;  // network interface that other ranks use to reach those here; empty: the one that routes to them
    int nice = 0;
    uint64_t memory_bytes = 0;  // of all ranks of a job here; 0: no limit
    int64_t processes = 1;      // the most of one start
  };
  // `send` must not block, and is called on any thread. Empties the folder. `cache` must outlive this.
  HostedRanks(Options options, FileCache& cache, std::function<void(HostReport)> send, FileCache::Fetch fetch);
  ~HostedRanks();

  void take(const HostOrder& order);
  // A coordinator that is silent for longer counts as lost.
  std::chrono::seconds silence_limit() const;

 private:
  class Start;
  const Options options_;
  FileCache& cache_;
  const std::function<void(HostReport)> send_;
  const FileCache::Fetch fetch_;
  FingerprintCache known_;
  std::atomic<int64_t> timeout_seconds_;
  std::unique_ptr<Start> start_;
};

}  // namespace tensord::server
