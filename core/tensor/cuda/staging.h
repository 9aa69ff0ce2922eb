#pragma once

#include <vector>

#include "core/base/mutex.h"
#include "core/tensor/cuda/api.h"

namespace tensord::cuda {

// Pinned memory by way of which what the host has reaches one device: the host may write its memory when the call
// returns, and goes on while the device copies. Thread-safe; never destroyed.
class StagingPool {
 public:
  explicit StagingPool(int device) : device_(device) {}
  // REQUIRES: the calling thread's device is this one.
  void copy(void* to, const void* from, size_t size_bytes, StreamHandle stream);

  static constexpr size_t kPieceBytes = size_t{4} << 20;
  static constexpr size_t kMaxPieces = 8;

 private:
  struct Piece {
    void* data = nullptr;
    EventHandle last_use = nullptr;
    bool is_taken = false;
  };
  Piece* take();
  Piece* find_free() TENSORD_REQUIRES(mutex_);
  void give_back(Piece* piece);

  const int device_;
  Mutex mutex_;
  std::vector<Piece*> pieces_ TENSORD_GUARDED_BY(mutex_);
  size_t next_ TENSORD_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::cuda
