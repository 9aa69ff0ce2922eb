#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "server/connections/frame_reader.h"

namespace tensord::server {

// What a client may do on a connection. gRPC's clients stay far below these limits.
struct FloodLimits {
  uint32_t streams_before_ack = 100;  // until it has acknowledged the server's settings, which contain the next limit
  uint32_t open_streams = 1000;
  // Budget of RST_STREAM frames: burst, then rate per second. The burst is 3 * open_streams, because clients reopen
  // queued streams after a mass cancel. While the resets of all connections together exceed `all_resets`,
  // each has `resets_of_many`.
  double resets = 3000, resets_a_second = 500;
  double all_resets = 5000, all_resets_a_second = 2500;
  double resets_of_many = 500;
  // Frames without a call.
  double control_frames = 500, control_frames_a_second = 500;
  uint32_t header_block_bytes = 256 << 10;  // plus kBytesAFrame for each of its frames
  uint32_t large_header_block_bytes =
      32 << 10;  // counts as that many control frames, because gRPC rejects the call after reading it
  double large_header_block_cost = 50;
  uint32_t all_open_streams = 10'000;  // of all connections together
};

// Why a connection was cut.
enum class CutReason : uint8_t {
  kNone,
  kUnacknowledgedStreams,
  kOpenStreams,
  kResets,
  kControlFrames,
  kHeaderBlock,
  kAllOpenStreams,
  kIdle,  // closed to make room for another one
};
inline constexpr size_t kCutReasons = 8;
const char* to_string(CutReason reason);  // "resets"

// Drains at a constant rate and overflows at a level. Needs no clock while it is empty.
class LeakyBucket {
 public:
  // Returns the new level.
  double add(double amount, double a_second, int64_t now_ns) {
    level_ -= static_cast<double>(now_ns - last_ns_) * 1e-9 * a_second;
    if (level_ < 0) level_ = 0;
    last_ns_ = now_ns;
    level_ += amount;
    return level_;
  }

 private:
  double level_ = 0;
  int64_t last_ns_ = 0;
};

// Totals over all connections of a server. Thread-safe.
class FloodTotals {
 public:
  double add_reset(double a_second, int64_t now_ns) {
    const MutexLock lock(mutex_);
    return resets_.add(1, a_second, now_ns);
  }

 private:
  Mutex mutex_;
  LeakyBucket resets_ TENSORD_GUARDED_BY(mutex_);
};

// Decides from a connection's frames whether its client floods the server. gRPC's own limits apply only to clients that
// acknowledge them, and gRPC allocates a stream before it checks a limit. It has no clock; for one thread at a time.
class FloodPolicy {
 public:
  FloodPolicy(const FloodLimits& limits, FloodTotals& totals, const Clock& clock)
      : limits_(limits), totals_(totals), clock_(clock) {}

  // A frame from the client: the reason to cut the connection now, or kNone.
  CutReason received(const FrameHead& frame);
  // A frame from the server.
  CutReason sent(const FrameHead& frame);

  // Streams that the client opened and neither side has ended.
  size_t open_streams() const { return open_.size(); }

 private:
  CutReason received_headers(const FrameHead& frame);
  CutReason add_to_header_block(const FrameHead& frame);
  CutReason count_reset();
  CutReason count_control(double amount);
  bool close_stream(uint32_t stream);

  const FloodLimits& limits_;
  FloodTotals& totals_;
  const Clock& clock_;
  std::vector<uint32_t> open_;  // ascending, as clients number them
  uint32_t last_stream_ = 0;
  bool has_acknowledged_ = false;
  uint32_t streams_before_ack_ = 0;
  uint32_t header_block_bytes_ = 0;
  LeakyBucket resets_, control_frames_;
  // Frames that clients send in response are free: window updates and pings for data, resets of calls that were
  // answered.
  uint32_t control_credit_ = 0, reset_credit_ = 0;
};

}  // namespace tensord::server
