#include "server/connections/flood_policy.h"

#include <algorithm>

namespace tensord::server {
namespace {

// Server memory per frame besides its payload.
constexpr uint32_t kBytesAFrame = 64;

// Cost of a WINDOW_UPDATE beyond those that sent data calls for; clients may have reasons for a few.
constexpr double kWindowUpdateCost = 1.0 / 20;

// For each DATA frame clients update two windows, and some (Go's, Java's) send a PING to measure the bandwidth-delay
// product.
constexpr uint32_t kControlsADataFrame = 3;
constexpr uint32_t kMaxCredit = 1000;

// RST_STREAM error codes that are not a client's fault: calls that ended early, and cancelled calls.
constexpr uint32_t kNoError = 0, kCancel = 8;

void add_credit(uint32_t& credit, uint32_t amount) { credit = std::min(credit + amount, kMaxCredit); }

bool take_credit(uint32_t& credit) {
  if (credit == 0) return false;
  --credit;
  return true;
}

}  // namespace

const char* to_string(CutReason reason) {
  static constexpr std::array<const char*, kCutReasons> names = {
      "none",           "unacknowledged_streams", "open_streams",     "resets",
      "control_frames", "header_block",           "all_open_streams", "idle"};
  return names[static_cast<size_t>(reason)];
}

CutReason FloodPolicy::received(const FrameHead& frame) {
  switch (frame.type) {
    case FrameHead::kData:
      // An empty DATA frame that ends a stream is normal.
      return frame.length > 0 || frame.has(FrameHead::kEndStream) ? CutReason::kNone : count_control(1);
    case FrameHead::kHeaders: return received_headers(frame);
    case FrameHead::kContinuation: return add_to_header_block(frame);
    case FrameHead::kResetStream: close_stream(frame.stream); return count_reset();
    case FrameHead::kSettings:
      if (frame.has(FrameHead::kAck)) has_acknowledged_ = true;
      return count_control(1);
    case FrameHead::kPing: return take_credit(control_credit_) ? CutReason::kNone : count_control(1);
    case FrameHead::kWindowUpdate:
      return take_credit(control_credit_) ? CutReason::kNone : count_control(kWindowUpdateCost);
    default: return count_control(1);
  }
}

CutReason FloodPolicy::received_headers(const FrameHead& frame) {
  header_block_bytes_ = 0;
  const CutReason block = add_to_header_block(frame);
  if (block != CutReason::kNone) return block;
  if (frame.stream <= last_stream_) return count_control(1);  // trailers, which gRPC clients do not send
  last_stream_ = frame.stream;
  if (!has_acknowledged_ && ++streams_before_ack_ > limits_.streams_before_ack)
    return CutReason::kUnacknowledgedStreams;
  if (open_.size() >= limits_.open_streams) return CutReason::kOpenStreams;
  open_.push_back(frame.stream);
  return CutReason::kNone;
}

CutReason FloodPolicy::add_to_header_block(const FrameHead& frame) {
  const bool was_large = header_block_bytes_ > limits_.large_header_block_bytes;
  header_block_bytes_ += std::min(frame.length, limits_.header_block_bytes) + kBytesAFrame;
  if (header_block_bytes_ > limits_.header_block_bytes) return CutReason::kHeaderBlock;
  const bool is_large = header_block_bytes_ > limits_.large_header_block_bytes;
  return is_large && !was_large ? count_control(limits_.large_header_block_cost) : CutReason::kNone;
}

CutReason FloodPolicy::sent(const FrameHead& frame) {
  if (frame.type == FrameHead::kResetStream) {
    close_stream(frame.stream);
    // Malformed frames that make the server reset a stream are a covert way to cancel it, so they count as resets.
    return frame.error_code == kNoError || frame.error_code == kCancel ? CutReason::kNone : count_reset();
  }
  if (frame.type == FrameHead::kData && frame.length > 0) add_credit(control_credit_, kControlsADataFrame);
  const bool may_end = frame.type == FrameHead::kHeaders || frame.type == FrameHead::kData;
  if (may_end && frame.has(FrameHead::kEndStream) && close_stream(frame.stream)) add_credit(reset_credit_, 1);
  return CutReason::kNone;
}

CutReason FloodPolicy::count_reset() {
  if (take_credit(reset_credit_)) return CutReason::kNone;
  const int64_t now_ns = clock_.now_ns();
  const bool is_crowded = totals_.add_reset(limits_.all_resets_a_second, now_ns) > limits_.all_resets;
  const double max = is_crowded ? limits_.resets_of_many : limits_.resets;
  return resets_.add(1, limits_.resets_a_second, now_ns) > max ? CutReason::kResets : CutReason::kNone;
}

CutReason FloodPolicy::count_control(double amount) {
  const double level = control_frames_.add(amount, limits_.control_frames_a_second, clock_.now_ns());
  return level > limits_.control_frames ? CutReason::kControlFrames : CutReason::kNone;
}

bool FloodPolicy::close_stream(uint32_t stream) {
  const auto found = std::lower_bound(open_.begin(), open_.end(), stream);
  if (found == open_.end() || *found != stream) return false;
  open_.erase(found);
  return true;
}

}  // namespace tensord::server
