#include "core/tensor/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"

namespace tensord::cuda {

void StagingPool::copy(void* to, const void* from, size_t size_bytes, StreamHandle stream) {
  for (size_t done = 0; done < size_bytes;) {
    const size_t count = std::min(size_bytes - done, kPieceBytes);
    Piece* const piece = take();
    std::memcpy(piece->data, static_cast<const char*>(from) + done, count);
    const Outcome copied = api().copy(static_cast<char*>(to) + done, piece->data, count, stream);
    const Outcome noted =
        copied == Outcome::kDone ? api().record_event(piece->last_use, stream) : api().synchronize_stream(stream);
    give_back(piece);
    check_cuda(copied, "copy to the device");
    check_cuda(noted, "event of a copy");
    done += count;
  }
}

StagingPool::Piece* StagingPool::find_free() {
  for (Piece* const piece : pieces_) {
    if (!piece->is_taken && api().query_event(piece->last_use) == Outcome::kDone) return piece;
  }
  return nullptr;
}

// A free one; a new one while there are few; else the one that was taken first of those that nobody fills.
StagingPool::Piece* StagingPool::take() {
  Piece* found = nullptr;
  {
    const MutexLock lock(mutex_);
    found = find_free();
    if (!found && pieces_.size() >= kMaxPieces) {
      for (size_t i = 0; i < pieces_.size() && !found; ++i) {
        Piece* const candidate = pieces_[next_++ % pieces_.size()];
        if (!candidate->is_taken) found = candidate;
      }
    }
    if (found) found->is_taken = true;
  }
  if (found) {
    const Outcome passed = api().synchronize_event(found->last_use);
    if (passed != Outcome::kDone) give_back(found);
    check_cuda(passed, "wait for pinned memory");
    return found;
  }
  auto made = std::make_unique<Piece>();
  made->is_taken = true;
  check_cuda(api().allocate_host(kPieceBytes, &made->data), "pinned memory for copies");
  check_cuda(api().make_event(device_, &made->last_use), "event of a copy");
  const MutexLock lock(mutex_);
  pieces_.push_back(made.get());
  return made.release();
}

void StagingPool::give_back(Piece* piece) {
  const MutexLock lock(mutex_);
  piece->is_taken = false;
}

}  // namespace tensord::cuda
