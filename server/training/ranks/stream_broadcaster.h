#pragma once

#include <atomic>
#include <memory>

#include "core/base/thread.h"
#include "server/training/data/batch_stream.h"

namespace tensord::server {

// The file descriptor of rank 0's process that streamed batches come from.
inline constexpr int kStreamedBatches = 4;

// Carries what a client streams to the process of rank 0: batches, whether somebody streams, the end. What the process
// does not read holds the client back. Works on a thread of its own.
class StreamBroadcaster {
 public:
  // `socket` stays open as long as this lives.
  StreamBroadcaster(std::shared_ptr<BatchStream> stream, int socket);
  ~StreamBroadcaster();  // waits for nobody
  StreamBroadcaster(const StreamBroadcaster&) = delete;
  StreamBroadcaster& operator=(const StreamBroadcaster&) = delete;

 private:
  void work();

  const std::shared_ptr<BatchStream> stream_;
  const int socket_;
  std::atomic<bool> is_stopped_{false};
  Thread thread_;  // last: it uses the rest
};

// The other side: gives `stream` what comes, a batch ahead of the one that is worked on, until the socket ends.
void read_streamed(int socket, BatchStream& stream);

}  // namespace tensord::server
