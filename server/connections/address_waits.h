#pragma once

#include <cstdint>
#include <map>

#include "server/connections/peer_address.h"

namespace tensord::server {

// For how long addresses whose connections were cut get no new ones: 1 s at first, twice as long each time that it
// happens again, until they behave. Pure; times are in nanoseconds of one clock.
class AddressWaits {
 public:
  // 0: nobody waits.
  explicit AddressWaits(int64_t longest_ns) : longest_ns_(longest_ns) {}

  void record_cut(const PeerAddress& address, int64_t now_ns);
  bool waits(const PeerAddress& address, int64_t now_ns) const;
  size_t size() const { return waits_.size(); }

  static constexpr size_t kMaxAddresses = 4096;

 private:
  struct Wait {
    int64_t length_ns = 0;
    int64_t until_ns = 0;
  };
  bool is_over(const Wait& wait, int64_t now_ns) const;
  void make_room(int64_t now_ns);

  const int64_t longest_ns_;
  std::map<PeerAddress, Wait> waits_;
};

}  // namespace tensord::server
