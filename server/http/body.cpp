#include "server/http/body.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr uint64_t kBodyAlignment = 64;
// Blocks of a chunked body; each is twice as large as the previous one.
constexpr uint64_t kFirstBlockBytes = 16 << 10;
constexpr uint64_t kMaxBlockBytes = 8 << 20;
// Maximum size of a chunk header, which must be buffered whole.
constexpr size_t kMaxChunkHeadBytes = 4096;

constexpr int kTooLarge = 413, kNoRoom = 429, kBad = 400;

}  // namespace

std::vector<std::span<const uint8_t>> HttpBody::pieces() const {
  std::vector<std::span<const uint8_t>> out;
  for (const Block& block : blocks_) {
    if (block.size_bytes != 0) out.emplace_back(block.data(), block.size_bytes);
  }
  return out;
}

std::string_view HttpBody::whole(BodyText& joined) const {
  const auto all = pieces();
  if (all.empty()) return {};
  if (all.size() == 1) return {reinterpret_cast<const char*>(all[0].data()), all[0].size()};
  joined.clear();
  joined.reserve(size_bytes_);
  for (const auto& piece : all) joined.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return joined;
}

bool BodyReceiver::add_block(uint64_t bytes, const HttpMemoryQuota& quota) {
  HttpBody::Block block;
  try {
    if (quota && (chunks_ || bytes > kUncountedBytes)) block.hold = quota(bytes);
    block.memory = allocate_storage(bytes, Device{});
  } catch (const Error& error) {
    no_room_ = error.what();
    return false;
  }
  body_.blocks_.push_back(std::move(block));
  room_bytes_ = bytes;
  return true;
}

int BodyReceiver::start(const HttpHead& head, const BodyPlan& plan, const HttpMemoryQuota& quota) {
  max_bytes_ = plan.max_bytes;
  if (head.is_chunked) {
    chunks_.emplace();
    return 0;
  }
  const uint64_t size = head.content_length.value_or(0);
  if (size > max_bytes_) return kTooLarge;
  // Leading padding, so that the wanted byte is aligned.
  const uint64_t begin =
      plan.aligned_at < size ? (kBodyAlignment - plan.aligned_at % kBodyAlignment) % kBodyAlignment : 0;
  if (!add_block(size + begin, quota)) return kNoRoom;
  body_.blocks_.back().begin = begin;
  room_bytes_ = size;
  return 0;
}

std::span<uint8_t> BodyReceiver::room() {
  HttpBody::Block& block = body_.blocks_.back();
  return {block.data() + block.size_bytes, room_bytes_};
}

void BodyReceiver::add(size_t count) {
  body_.blocks_.back().size_bytes += count;
  body_.size_bytes_ += count;
  room_bytes_ -= count;
  if (!chunks_ && room_bytes_ == 0) is_done_ = true;
}

size_t BodyReceiver::take(std::string_view bytes, const HttpMemoryQuota& quota, int& status) {
  if (chunks_) return take_chunks(bytes, quota, status);
  const std::span<uint8_t> to = room();
  const size_t count = std::min(to.size(), bytes.size());
  std::memcpy(to.data(), bytes.data(), count);
  add(count);
  return count;
}

std::string BodyReceiver::reason(int status) const {
  if (status == kTooLarge) return "the request's body is too large";
  if (status == kNoRoom) return no_room_;
  if (!has_too_many_chunks_) return "the chunks of the request's body are broken";
  return concat("Chunked request body exceeds maximum of ", kMaxChunks,
                " non-empty chunks. Send fewer or larger HTTP chunks.");
}

size_t BodyReceiver::take_chunks(std::string_view bytes, const HttpMemoryQuota& quota, int& status) {
  size_t used = 0;
  for (;;) {
    const std::span<uint8_t> to = body_.blocks_.empty() ? std::span<uint8_t>() : room();
    const ChunkReader::Step step = chunks_->read(bytes.substr(used), to);
    used += step.used;
    if (step.written != 0) add(step.written);
    switch (step.state) {
      case ChunkReader::State::kDone: is_done_ = true; return used;
      case ChunkReader::State::kTooMany: has_too_many_chunks_ = true; [[fallthrough]];
      case ChunkReader::State::kBroken: status = kBad; return used;
      case ChunkReader::State::kNeedsInput:
        if (bytes.size() - used > kMaxChunkHeadBytes) status = kBad;
        return used;
      case ChunkReader::State::kNeedsRoom: break;
    }
    if (body_.size_bytes_ >= max_bytes_) {
      status = kTooLarge;
      return used;
    }
    const uint64_t wanted =
        std::clamp(body_.blocks_.empty() ? 0 : 2 * body_.blocks_.back().size_bytes, kFirstBlockBytes, kMaxBlockBytes);
    if (!add_block(std::min(wanted, max_bytes_ - body_.size_bytes_), quota)) {
      status = kNoRoom;
      return used;
    }
  }
}

}  // namespace tensord::server
