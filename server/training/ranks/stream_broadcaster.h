#pragma once

#include <atomic>
#include <memory>

#include "core/base/thread.h"
#include "server/training/data/batch_stream.h"

namespace tensord::server {

// The file descriptor on which rank 0's process receives streamed batches.
inline constexpr int kStreamedBatches = 4;

// Sends a client's stream to the process of rank 0: batches, whether a client is connected, and the end. If the process
// does not read, the client has to wait. Has a thread of its own.
class StreamBroadcaster {
 public:
  // `socket` must stay open while this lives.
  StreamBroadcaster(std::shared_ptr<BatchStream> stream, int socket);
  ~StreamBroadcaster();  // does not wait for the client
  StreamBroadcaster(const StreamBroadcaster&) = delete;
  StreamBroadcaster& operator=(const StreamBroadcaster&) = delete;

 private:
  void work();

  const std::shared_ptr<BatchStream> stream_;
  const int socket_;
  std::atomic<bool> is_stopped_{false};
  Thread thread_;  // last: it uses the other members
};

// The receiving side: fills `stream` until the socket ends, one batch ahead of the one in use.
void read_streamed(int socket, BatchStream& stream);

}  // namespace tensord::server
