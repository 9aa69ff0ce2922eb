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

// The other hosts of one start of a job: waits for them, sends them their files and starts ranks there. The ranks end
// with this object. Not thread-safe.
class RemoteHosts {
 public:
  struct Options {
    HostRegistry* registry = nullptr;
    FingerprintCache* fingerprints = nullptr;
    HostBackoff* resting = nullptr;
    std::filesystem::path folder;  // of the job
    std::string base_archive, data_folder;
    std::string interface;  // network interface that hosts use to reach this one; empty: the one that routes to them
  };
  RemoteHosts(const TrainingJob& job, Options options);
  ~RemoteHosts();

  // The number of other hosts that a job with that many ranks needs.
  static size_t needed(const DistributionSpec& spec, int64_t world_size);

  // The functions below return false if a request for the job arrived. `is_waiting_for` is called with a description of
  // what they wait for.
  using Tell = std::function<void(const std::string& message)>;
  // Waits for enough hosts, or after the timeout for as many as min_world_size requires; hosts in backoff count once it
  // has ended. Throws Error{kDeadlineExceeded}.
  bool gather(const Tell& tell);
  // After gather(): the number of ranks for which there are hosts.
  int64_t world_size() const { return world_size_; }
  // Waits until every host has its files. Throws Error{kUnavailable} if a host was lost, HostDiskError, and errors of a
  // host.
  bool prepare(const Tell& tell);

  // This host's numeric address that the others use. Throws Error.
  std::string own_address() const;
  // Starts ranks from number `first` on, the same number on each host. `task` is the common part.
  std::vector<std::unique_ptr<WorkerHandle>> start(const RankTask& task, int64_t first);
  // Dispatches the hosts' messages to their handles. Throws a host's error, HostDiskError if its disk failed,
  // Error{kUnavailable} if it was lost.
  void read();

 private:
  class Rank;
  struct File {
    HostFile wanted;
    std::filesystem::path path;
  };
  // Leases hosts; false if there are not enough.
  bool take_hosts(int64_t world_size, const std::set<std::string>& without);
  [[noreturn]] void fail_too_few(size_t count, size_t found) const;
  bool find_files(std::vector<File>& files) const;
  void take(size_t host, const HostReport& report);
  bool is_interrupted() const { return interrupts(job_.request()); }

  const TrainingJob& job_;
  const DistributionSpec& spec_;
  const Options options_;
  const std::string start_;
  int64_t world_size_;
  std::vector<std::unique_ptr<HostRegistry::SharedFile>> shared_;
  std::vector<std::unique_ptr<HostRegistry::Lease>> leases_;
  std::vector<bool> is_prepared_;                // by lease
  std::vector<std::map<int64_t, Rank*>> ranks_;  // by lease; those that still exist
};

}  // namespace tensord::server
