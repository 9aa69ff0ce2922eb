#pragma once

#include <tensord/client/client.h>
#include <tensord/client/shared_memory.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Measures a served model from here: clients that each have one request at a time, for some seconds.
namespace tensord::server {

// What the server says of the model's requests of a measurement, means of those that went well. Requests of others
// count too.
struct ServerTimes {
  uint64_t requests = 0, cache_hits = 0;
  double queue_ms = 0, compute_input_ms = 0, compute_infer_ms = 0, compute_output_ms = 0;
  double rows_per_run = 0;  // of the batches that it made
};

struct LoadResult {
  int clients = 0;
  double seconds = 0;
  std::vector<double> latencies_ms;  // sorted; of the requests that went well
  uint64_t errors = 0;
  std::string first_error;            // with its code
  std::optional<ServerTimes> server;  // none where the server does not tell

  double requests_per_second() const { return static_cast<double>(latencies_ms.size()) / seconds; }
};

// Has the inputs of a request in memory that the server shares, and for each client a place for the outputs.
class SharedTensors {
 public:
  // `sample`: a result of the request. Throws client::Error, as where a tensor is of BYTES.
  SharedTensors(client::Client& server, const client::Request& request, const client::Result& sample, int clients);
  client::Request request_of(int client) const;

 private:
  const client::Request request_;
  std::vector<std::pair<std::string, client::Tensor>> outputs_;  // of which only types and shapes count
  size_t input_bytes_ = 0, output_bytes_ = 0;                    // outputs: of one client
  std::unique_ptr<client::SharedMemory> memory_;
};

// `request_of` gives each client's request. Ends early with `stop`. `on_tick` gets the seconds that have passed, ten
// times a second, on the calling thread.
LoadResult measure_load(client::Client& server, const std::function<client::Request(int client)>& request_of,
                        int clients, double seconds, const std::atomic<bool>& stop,
                        const std::function<void(double)>& on_tick);

}  // namespace tensord::server
