#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/training/hosts/host_registry.h"
#include "server/training/jobs/file_fingerprint.h"
#include "server/training/jobs/training_job.h"
#include "server/training/ranks/host_backoff.h"
#include "server/training/ranks/rank_task.h"
#include "server/training/ranks/worker_handle.h"

namespace tensord::server {

// A host's disk is full or fails.
struct HostDiskError : Error {
  HostDiskError(ErrorCode code, const std::string& message, std::string host)
      : Error(code, message), host(std::move(host)) {}
  const std::string host;
};

// The other hosts of one start of a job's ranks: waits for them, gives them their files, starts the ranks there. What
// runs there ends with this. For one thread.
class RemoteHosts {
 public:
  struct Options {
    HostRegistry* registry = nullptr;
    FingerprintCache* fingerprints = nullptr;
    HostBackoff* resting = nullptr;
    std::filesystem::path folder;  // of the job
    std::string base_archive, data_folder;
    std::string interface;  // that hosts reach this one by; empty: the one that the route to them takes
  };
  RemoteHosts(const TrainingJob& job, Options options);
  ~RemoteHosts();

  // How many other hosts a job needs for so many ranks.
  static size_t needed(const DistributionSpec& spec, int64_t world_size);

  // Each gives false when something else is wanted of the job. `is_waiting_for` is told what goes on.
  using Tell = std::function<void(const std::string& message)>;
  // Until enough hosts are there, or as many as min_world_size wants and the time is over; those that rest count
  // once they have rested. Throws Error{kDeadlineExceeded}.
  bool gather(const Tell& tell);
  // After it: the ranks that there are hosts for.
  int64_t world_size() const { return world_size_; }
  // Until each has its files. Throws Error{kUnavailable} where a host was lost, HostDiskError, and what a host says.
  bool prepare(const Tell& tell);

  // The address of this host, in digits, that the others reach it by. Throws Error.
  std::string own_address() const;
  // Ranks from `first` on, so many on each host. `task` has what is the same for all.
  std::vector<std::unique_ptr<WorkerHandle>> start(const RankTask& task, int64_t first);
  // Takes over what the hosts said; the links have it then. Throws what a host could not do, HostDiskError where its
  // disk did not let it, Error{kUnavailable} where it was lost.
  void read();

 private:
  class Rank;
  struct File {
    HostFile wanted;
    std::filesystem::path path;
  };
  // Whether there are enough hosts, which are leased then.
  bool take_hosts(int64_t world_size, const std::set<std::string>& without);
  [[noreturn]] void fail_too_few(size_t count, size_t found) const;
  bool find_files(std::vector<File>& files) const;
  void take(size_t host, const HostReport& report);
  bool is_interrupted() const { return job_.request() != JobRequest::kNone; }

  const TrainingJob& job_;
  const DistributionSpec& spec_;
  const Options options_;
  const std::string start_;
  int64_t world_size_;
  std::vector<std::unique_ptr<HostRegistry::SharedFile>> shared_;
  std::vector<std::unique_ptr<HostRegistry::Lease>> leases_;
  std::vector<bool> is_prepared_;                // by lease
  std::vector<std::map<int64_t, Rank*>> ranks_;  // by lease; those that are still held
};

}  // namespace tensord::server
