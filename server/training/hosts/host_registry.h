#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "server/training/hosts/host_messages.h"

namespace tensord::server {

// The connection to a daemon that has joined; implemented by the transport. Thread-safe, and never blocks.
class HostLink {
 public:
  virtual ~HostLink() = default;
  virtual void send(const HostOrder& order) = 0;
  virtual void close(const Error& reason) = 0;
};

// A daemon that has joined. Thread-safe.
class JoinedHost {
 public:
  JoinedHost(HostInfo info, std::shared_ptr<HostLink> link, const Clock& clock)
      : info_(std::move(info)), link_(std::move(link)), clock_(clock) {}

  const HostInfo& info() const { return info_; }
  void send(const HostOrder& order) { link_->send(order); }
  void close(const Error& reason) { link_->close(reason); }

  // Called with its messages. Only reports of the latest start are kept.
  void receive(HostReport report);
  void leave(const std::string& reason);

  void begin(const std::string& start);
  std::vector<HostReport> take_reports();
  std::string left() const;  // the reason; empty while it is connected
  std::chrono::nanoseconds silence() const;

 private:
  const HostInfo info_;
  const std::shared_ptr<HostLink> link_;
  const Clock& clock_;
  mutable Mutex mutex_;
  int64_t heard_ns_ TENSORD_GUARDED_BY(mutex_) = clock_.now_ns();
  std::string start_ TENSORD_GUARDED_BY(mutex_), left_ TENSORD_GUARDED_BY(mutex_);
  std::vector<HostReport> reports_ TENSORD_GUARDED_BY(mutex_);
  size_t report_bytes_ TENSORD_GUARDED_BY(mutex_) = 0;
};

// The daemons that have joined this one, the job that each works for, and the files that they may fetch. Thread-safe.
class HostRegistry {
 public:
  explicit HostRegistry(std::string version, const Clock& clock = Clock::system())
      : version_(std::move(version)), clock_(clock) {}

  // Replaces a host of the same name that is silent or belongs to the same process. Throws Error{kInvalidArgument},
  // kAlreadyExists, kFailedPrecondition (another version), kUnavailable (shutdown).
  std::shared_ptr<JoinedHost> join(HostInfo info, std::shared_ptr<HostLink> link);
  void leave(const std::shared_ptr<JoinedHost>& host, const std::string& reason);
  // Closes all connections and rejects new ones.
  void close();

  struct Listed {
    HostInfo info;
    bool is_busy;
  };
  std::vector<Listed> hosts() const;  // by name

  // One job's use of a host; stops what the job runs there on destruction.
  class Lease {
   public:
    Lease(HostRegistry& registry, std::shared_ptr<JoinedHost> host) : registry_(registry), host_(std::move(host)) {}
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    JoinedHost& host() const { return *host_; }
    // Orders and reports belong to this start from now on.
    void begin(const std::string& start);

   private:
    HostRegistry& registry_;
    const std::shared_ptr<JoinedHost> host_;
    std::string start_;
  };
  // Leases `count` free hosts that can run `processes` each, ordered by name; only hosts in `names` if that is not
  // empty, in its order; none in `without`. Empty if there are not enough.
  std::vector<std::unique_ptr<Lease>> take(size_t count, const std::vector<std::string>& names, int64_t processes,
                                           const std::set<std::string>& without = {});
  // How many hosts take() would find.
  size_t free_hosts(const std::vector<std::string>& names, int64_t processes,
                    const std::set<std::string>& without = {}) const;

  // While it lives, hosts may fetch the file by its content.
  class SharedFile {
   public:
    SharedFile(HostRegistry& registry, std::string sha256) : registry_(registry), sha256_(std::move(sha256)) {}
    ~SharedFile();
    SharedFile(const SharedFile&) = delete;
    SharedFile& operator=(const SharedFile&) = delete;

   private:
    HostRegistry& registry_;
    const std::string sha256_;
  };
  std::unique_ptr<SharedFile> share(const std::string& sha256, const std::filesystem::path& file);
  // Part of such a file, at most `max` bytes; empty at its end. Throws Error{kNotFound}.
  std::string read_shared(const std::string& sha256, uint64_t offset, size_t max) const;

 private:
  std::vector<std::shared_ptr<JoinedHost>> candidates(const std::vector<std::string>& names, int64_t processes,
                                                      const std::set<std::string>& without) const
      TENSORD_REQUIRES(mutex_);

  const std::string version_;
  const Clock& clock_;
  mutable Mutex mutex_;
  bool is_closed_ TENSORD_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::shared_ptr<JoinedHost>> hosts_ TENSORD_GUARDED_BY(mutex_);  // by name
  std::set<const JoinedHost*> busy_ TENSORD_GUARDED_BY(mutex_);
  std::multimap<std::string, std::filesystem::path> files_ TENSORD_GUARDED_BY(mutex_);  // by content
};

}  // namespace tensord::server
