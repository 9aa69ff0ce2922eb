#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "core/base/mutex.h"

namespace tensord::server {

// The open connections of a port. If there are too many, closes the one that has been idle longest, or else the one
// that has been sending the head of its first request longest. Thread-safe.
class ConnectionTable {
 public:
  struct Limits {
    size_t connections = 8192;      // 0: no limit, also below
    size_t per_address = 256;       // of one address
    size_t heads_per_address = 64;  // of these, connections without a complete head yet
  };
  enum class Phase { kIdle, kHead, kBusy };

  // An entry of the table. Must leave the table before it is destroyed.
  struct Place {
    std::string address;  // the client's; empty: not counted per address
    int loop = 0;         // for the caller that closes it
    uint64_t connection = 0;

   private:
    friend ConnectionTable;
    bool is_in = false;
    Phase phase = Phase::kIdle;
    uint64_t since = 0;  // sequence number of the last change of phase
  };
  struct Victim {
    int loop = -1;  // -1: none
    uint64_t connection = 0;
  };

  explicit ConnectionTable(Limits limits) : limits_(limits) {}

  // False: the table is full and nothing can be closed. `victim` must be closed by the caller.
  bool add(Place& place, Victim& victim);
  void set_phase(Place& place, Phase phase, Victim& victim);
  void remove(Place& place);
  size_t size() const;

 private:
  using Order = std::map<uint64_t, Place*>;
  struct Group {
    size_t count = 0;
    Order idle, heads;
  };
  Victim evict(Group& group, bool is_heads_only = false) TENSORD_REQUIRES(mutex_);
  void link(Place& place, Phase phase) TENSORD_REQUIRES(mutex_);
  void unlink(Place& place) TENSORD_REQUIRES(mutex_);
  void take_out(Place& place) TENSORD_REQUIRES(mutex_);

  const Limits limits_;
  mutable Mutex mutex_;
  Group all_ TENSORD_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Group> by_address_ TENSORD_GUARDED_BY(mutex_);
  uint64_t changes_ TENSORD_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server
