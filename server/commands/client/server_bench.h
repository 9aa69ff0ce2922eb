#pragma once

#include <tensord/client/client.h>
#include <tensord/client/shared_memory.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Measures a model on a running server with closed-loop clients: each sends its next request when the previous one is
// answered.
namespace tensord::server {

// The server's statistics for the model during the measurement: means over successful requests. Requests of other
// clients are included.
struct ServerTimes {
  uint64_t requests = 0, cache_hits = 0;
  double queue_ms = 0, compute_input_ms = 0, compute_infer_ms = 0, compute_output_ms = 0;
  double rows_per_run = 0;  // mean rows per batch
};

struct LoadResult {
  int clients = 0;
  double seconds = 0;
  std::vector<double> latencies_ms;  // of successful requests, sorted
  uint64_t errors = 0;
  std::string first_error;            // with its status code
  std::optional<ServerTimes> server;  // unset if the server does not provide statistics

  double requests_per_second() const { return static_cast<double>(latencies_ms.size()) / seconds; }
};

// Shared-memory regions that hold a request's inputs, and one region for outputs per client.
class SharedTensors {
 public:
  // `sample` is a result of the request; it gives the output sizes. Throws client::Error, for example for BYTES
  // tensors.
  SharedTensors(client::Client& server, const client::Request& request, const client::Result& sample, int clients);
  client::Request request_of(int client) const;

 private:
  const client::Request request_;
  std::vector<std::pair<std::string, client::Tensor>> outputs_;  // only types and shapes are used
  size_t input_bytes_ = 0, output_bytes_ = 0;                    // outputs: per client
  std::unique_ptr<client::SharedMemory> memory_;
};

// `request_of` returns the request of each client. Setting `stop` ends the measurement early. `on_tick` is called ten
// times a second on the calling thread with the elapsed seconds.
LoadResult measure_load(client::Client& server, const std::function<client::Request(int client)>& request_of,
                        int clients, double seconds, const std::atomic<bool>& stop,
                        const std::function<void(double)>& on_tick);

}  // namespace tensord::server
