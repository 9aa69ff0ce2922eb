#include "server/commands/client/server_bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/error.h"
#include "core/base/mutex.h"

namespace tensord::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBenchTick = std::chrono::milliseconds(100);
constexpr size_t kRegionAlignment = 64;

size_t aligned(size_t size) { return (size + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment; }

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Sums over all versions. Returns nullopt if the server does not provide statistics to this client.
std::optional<client::ModelStatistics> statistics_of(client::Client& server, const std::string& model) {
  client::ModelStatistics sum;
  const auto add = [](auto& to, const auto& from) {
    to.count += from.count;
    to.ns += from.ns;
  };
  try {
    for (const client::ModelStatistics& version : server.statistics(model)) {
      sum.inference_count += version.inference_count;
      sum.execution_count += version.execution_count;
      add(sum.success, version.success);
      add(sum.queue, version.queue);
      add(sum.compute_input, version.compute_input);
      add(sum.compute_infer, version.compute_infer);
      add(sum.compute_output, version.compute_output);
      add(sum.cache_hit, version.cache_hit);
    }
  } catch (const client::Error&) {
    return std::nullopt;
  }
  return sum;
}

std::optional<ServerTimes> times_between(const std::optional<client::ModelStatistics>& before,
                                         const std::optional<client::ModelStatistics>& after) {
  // The counts of a version unloaded during the measurement are gone.
  if (!before || !after || after->success.count <= before->success.count) return std::nullopt;
  const auto mean_ms = [](const auto& from, const auto& to) {
    return to.count > from.count && to.ns >= from.ns
               ? static_cast<double>(to.ns - from.ns) / 1e6 / static_cast<double>(to.count - from.count)
               : 0;
  };
  ServerTimes out;
  out.requests = after->success.count - before->success.count;
  out.cache_hits = after->cache_hit.count - before->cache_hit.count;
  out.queue_ms = mean_ms(before->queue, after->queue);
  out.compute_input_ms = mean_ms(before->compute_input, after->compute_input);
  out.compute_infer_ms = mean_ms(before->compute_infer, after->compute_infer);
  out.compute_output_ms = mean_ms(before->compute_output, after->compute_output);
  const uint64_t runs = after->execution_count - before->execution_count;
  const uint64_t rows = after->inference_count - before->inference_count;
  out.rows_per_run = runs == 0 ? 0 : static_cast<double>(rows) / static_cast<double>(runs);
  return out;
}

void check_shared(const std::string& what, const std::string& name, const client::Tensor& tensor) {
  if (tensor.type() == client::DataType::kBytes) {
    throw client::InvalidArgumentError(
        concat("--shared-memory: ", what, " '", name, "' is of texts, which go without"));
  }
}

// State shared by the clients of a measurement.
struct Tally {
  Mutex mutex;
  LoadResult result TENSORD_GUARDED_BY(mutex);

  LoadResult take() {
    const MutexLock lock(mutex);
    return std::move(result);
  }
  void add(const std::vector<double>& latencies_ms, uint64_t errors, const std::string& error) {
    const MutexLock lock(mutex);
    result.latencies_ms.insert(result.latencies_ms.end(), latencies_ms.begin(), latencies_ms.end());
    result.errors += errors;
    if (result.first_error.empty()) result.first_error = error;
  }
};

void ask_until(client::Client& server, const client::Request& request, Clock::time_point end,
               const std::atomic<bool>& stop, Tally& tally) {
  std::vector<double> latencies_ms;
  uint64_t errors = 0;
  std::string first_error;
  while (Clock::now() < end && !stop) {
    const auto start = Clock::now();
    try {
      server.infer(request);
      latencies_ms.push_back(seconds_since(start) * 1e3);
    } catch (const client::Error& error) {
      if (errors++ == 0) first_error = concat(error.what(), " [", client::to_string(error.code()), "]");
    }
  }
  tally.add(latencies_ms, errors, first_error);
}

}  // namespace

SharedTensors::SharedTensors(client::Client& server, const client::Request& request, const client::Result& sample,
                             int clients)
    : request_(request) {
  for (const client::Input& input : request.inputs) {
    check_shared("input", input.name, input.tensor);
    input_bytes_ += aligned(input.tensor.size_bytes());
  }
  for (const auto& output : sample.outputs) {
    check_shared("output", output.name, output.tensor);
    outputs_.emplace_back(output.name, output.tensor);
    output_bytes_ += aligned(output.tensor.size_bytes());
  }
  const size_t bytes = input_bytes_ + static_cast<size_t>(clients) * output_bytes_;
  memory_ = std::make_unique<client::SharedMemory>(server, std::max<size_t>(bytes, 1));
  size_t offset = 0;
  for (const client::Input& input : request.inputs) {
    std::memcpy(memory_->bytes().data() + offset, input.tensor.bytes().data(), input.tensor.size_bytes());
    offset += aligned(input.tensor.size_bytes());
  }
}

client::Request SharedTensors::request_of(int client) const {
  client::Request request = request_;
  size_t offset = 0;
  for (client::Input& input : request.inputs) {
    const client::Tensor& tensor = input.tensor;
    const size_t size = tensor.size_bytes();
    input.tensor = memory_->tensor(tensor.type(), tensor.shape(), offset);
    offset += aligned(size);
  }
  offset += static_cast<size_t>(client) * output_bytes_;
  request.outputs.clear();
  for (const auto& [name, tensor] : outputs_) {
    request.outputs.push_back({.name = name, .into = memory_->tensor(tensor.type(), tensor.shape(), offset)});
    offset += aligned(tensor.size_bytes());
  }
  return request;
}

LoadResult measure_load(client::Client& server, const std::function<client::Request(int client)>& request_of,
                        int clients, double seconds, const std::atomic<bool>& stop,
                        const std::function<void(double)>& on_tick) {
  Tally tally;
  std::vector<client::Request> requests;
  for (int i = 0; i < clients; ++i) requests.push_back(request_of(i));
  const std::string& model = requests.front().model;
  const auto before = statistics_of(server, model);
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::vector<std::jthread> threads;  // joined even if a later thread cannot be created
  for (const client::Request& request : requests) {
    threads.emplace_back([&] { ask_until(server, request, end, stop, tally); });
  }
  while (Clock::now() < end && !stop) {
    on_tick(seconds_since(start));
    std::this_thread::sleep_until(std::min(end, Clock::now() + kBenchTick));
  }
  threads.clear();
  LoadResult result = tally.take();
  result.seconds = seconds_since(start);
  result.clients = clients;
  result.server = times_between(before, statistics_of(server, model));
  std::sort(result.latencies_ms.begin(), result.latencies_ms.end());
  return result;
}

}  // namespace tensord::server
