#pragma once

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <memory>
#include <set>
#include <vector>

#include "core/base/mutex.h"

// Gloo wakes a waiting thread when the peer closes a connection, but not when this side does. Ranks that all abort at
// once would wait until their deadline. So this code tracks every buffer that a thread may wait for.
namespace tensord::distributed {

class AbortableBuffer;

// The live buffers of a context.
struct LiveBuffers {
  Mutex mutex;
  std::set<AbortableBuffer*> buffers TENSORD_GUARDED_BY(mutex);
  std::atomic<bool> is_aborted = false;

  void check_alive() const {
    if (is_aborted) throw gloo::IoException("the group was ended");
  }
};

class AbortableBuffer final : public gloo::transport::UnboundBuffer {
 public:
  AbortableBuffer(std::unique_ptr<UnboundBuffer> inner, std::shared_ptr<LiveBuffers> live)
      : UnboundBuffer(inner->ptr, inner->size), inner_(std::move(inner)), live_(std::move(live)) {
    const MutexLock lock(live_->mutex);
    live_->buffers.insert(this);
  }
  ~AbortableBuffer() override {
    const MutexLock lock(live_->mutex);
    live_->buffers.erase(this);
  }

  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override {
    live_->check_alive();
    if (!inner_->waitRecv(rank, timeout)) throw gloo::IoException("the group was ended");
    return true;
  }
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override {
    live_->check_alive();
    if (!inner_->waitSend(rank, timeout)) throw gloo::IoException("the group was ended");
    return true;
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }

  void send(int peer, uint64_t slot, size_t offset, size_t count) override {
    live_->check_alive();
    inner_->send(peer, slot, offset, count);
  }
  void recv(int peer, uint64_t slot, size_t offset, size_t count) override {
    live_->check_alive();
    inner_->recv(peer, slot, offset, count);
  }
  void recv(std::vector<int> peers, uint64_t slot, size_t offset, size_t count) override {
    live_->check_alive();
    inner_->recv(std::move(peers), slot, offset, count);
  }

 private:
  const std::unique_ptr<UnboundBuffer> inner_;
  const std::shared_ptr<LiveBuffers> live_;
};

// The transport context; its buffers are abortable.
class AbortableTransport final : public gloo::transport::Context {
 public:
  AbortableTransport(std::shared_ptr<Context> inner, std::shared_ptr<LiveBuffers> live)
      : Context(inner->rank, inner->size), inner_(std::move(inner)), live_(std::move(live)) {}
  std::unique_ptr<gloo::transport::Pair>& getPair(int rank) override { return inner_->getPair(rank); }
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override { return inner_->createPair(rank); }
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data, size_t size_bytes) override {
    return std::make_unique<AbortableBuffer>(inner_->createUnboundBuffer(data, size_bytes), live_);
  }

 private:
  const std::shared_ptr<Context> inner_;
  const std::shared_ptr<LiveBuffers> live_;
};

// Connections between all ranks. Any thread may call abort().
class AbortableContext final : public gloo::rendezvous::Context {
 public:
  using Context::Context;

  void connect(gloo::rendezvous::Store& store, std::shared_ptr<gloo::transport::Device> device) {
    connectFullMesh(store, device);
    transportContext_ = std::make_shared<AbortableTransport>(transportContext_, live_);
  }

  void abort() {
    if (live_->is_aborted.exchange(true)) return;
    {
      const MutexLock lock(live_->mutex);
      for (AbortableBuffer* const buffer : live_->buffers) {
        buffer->abortWaitRecv();
        buffer->abortWaitSend();
      }
    }
    if (!transportContext_) return;
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      try {
        getPair(peer)->close();
      } catch (const std::exception&) {
        // The connection is already gone.
      }
    }
  }

 private:
  const std::shared_ptr<LiveBuffers> live_ = std::make_shared<LiveBuffers>();
};

}  // namespace tensord::distributed
