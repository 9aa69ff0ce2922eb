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

// What this daemon does for the one that it joined: gets files, starts ranks as children of its own and passes on what
// they say. One start at a time; all of it ends with this. take() is for one thread.
class HostedRanks {
 public:
  struct Options {
    std::filesystem::path folder;  // for what ranks need, a folder each start
    std::string data_folder;       // of this server: files that are here already are not fetched; empty: none
    std::string program = "/proc/self/exe";
    std::string host;       // this host's name
    std::string interface;  // that other ranks reach those here by; empty: the one of the route there
    int nice = 0;
    uint64_t memory_bytes = 0;  // of all ranks of a job here; 0: no limit
    int64_t processes = 1;      // most that a start may have
  };
  // `send` never blocks, and may be called by any thread. Empties the folder. `cache` must outlive this.
  HostedRanks(Options options, FileCache& cache, std::function<void(HostReport)> send, FileCache::Fetch fetch);
  ~HostedRanks();

  void take(const HostOrder& order);
  // After which a coordinator that says nothing is gone.
  std::chrono::seconds silence_limit() const;

 private:
  class Start;
  const Options options_;
  FileCache& cache_;
  const std::function<void(HostReport)> send_;
  const FileCache::Fetch fetch_;
  std::atomic<int64_t> timeout_seconds_;
  std::unique_ptr<Start> start_;
};

}  // namespace tensord::server
