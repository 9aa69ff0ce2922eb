#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/mutex.h"

#include "server/repository/periodic_thread.h"

namespace tensord::server {

// The server's certificate with its chain, its key, and the roots of clients' certificates, from PEM files that others
// may replace at any time. What was read last and fits together serves until what lies there is whole again: files are
// taken when they stay the same for a moment, all of them can be read, and the key is the certificate's. Thread-safe.
class Certificates {
 public:
  struct Files {
    std::string chain, key, roots;  // roots empty: clients need no certificate
  };
  struct Pem {
    std::string chain, key, roots;
    bool operator==(const Pem&) const = default;
  };
  // Told of every change: whether it was taken.
  using Observer = std::function<void(bool is_taken)>;

  // Looks at the files every so often, with 0 only when look() is called. Throws Error{kInvalidArgument} that names the
  // flag where they are of no use now.
  Certificates(Files files, std::chrono::seconds interval, Observer observer = {});
  ~Certificates();

  // Never null. Another pointer for other contents.
  std::shared_ptr<const Pem> current() const;
  // Takes what the files have now, if it is another and of use.
  void look();

 private:
  struct Found {
    Pem pem;
    std::string reason;  // why it is of no use; empty: it may be
    bool operator==(const Found&) const = default;
  };

  Pem read() const;
  Found find() const;

  const Files files_;
  const Observer observer_;
  mutable Mutex mutex_;
  std::shared_ptr<const Pem> current_ TENSORD_GUARDED_BY(mutex_);
  Found refused_;  // by the thread that looks: what it has told already
  std::unique_ptr<PeriodicThread> looks_;
};

// Throws Error{kInvalidArgument}: the chain or the roots have something that is no certificate, or the key is not the
// first certificate's.
void check_fits(const Certificates::Pem& pem);

}  // namespace tensord::server
