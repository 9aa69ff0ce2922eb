#pragma once

#include <cstdint>
#include <map>

#include "server/connections/peer_address.h"

namespace tensord::server {

// How long addresses whose connections were cut must wait before they may connect again: 1 s at first, doubled each
// time, until they behave. It has no clock; times are nanoseconds of one clock.
class AddressWaits {
 public:
  // 0: no waiting.
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
