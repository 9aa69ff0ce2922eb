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

// The server's certificate with its chain, its key, and the root certificates for clients, from PEM files that may be
// replaced at any time. The last valid contents stay in use until the new files are valid: they are unchanged for a
// moment, all readable, and the key matches the certificate. Thread-safe.
class Certificates {
 public:
  struct Files {
    std::string chain, key, roots;  // roots empty: clients need no certificate
  };
  struct Pem {
    std::string chain, key, roots;
    bool operator==(const Pem&) const = default;
  };
  // Called for every change of the files with whether it was accepted.
  using Observer = std::function<void(bool is_taken)>;

  // Checks the files at this interval; 0 means only in look(). Throws Error{kInvalidArgument} naming the flag if the
  // files are invalid now.
  Certificates(Files files, std::chrono::seconds interval, Observer observer = {});
  ~Certificates();

  // Never null. The pointer changes if the contents do.
  std::shared_ptr<const Pem> current() const;
  // Reads the files, and accepts their contents if these are new and valid.
  void look();

 private:
  struct Found {
    Pem pem;
    std::string reason;  // why the contents are invalid; empty: possibly valid
    bool operator==(const Found&) const = default;
  };

  Pem read() const;
  Found find() const;

  const Files files_;
  const Observer observer_;
  mutable Mutex mutex_;
  std::shared_ptr<const Pem> current_ TENSORD_GUARDED_BY(mutex_);
  Found refused_;  // used by the checking thread: the contents that it already reported
  std::unique_ptr<PeriodicThread> looks_;
};

// Throws Error{kInvalidArgument} if the chain or the roots contain something other than certificates, or the key does
// not match the first certificate.
void check_fits(const Certificates::Pem& pem);

}  // namespace tensord::server
