// The cost of metrics: nanoseconds of CPU time for all counters of a request that runs alone, with one thread and with
// the given number of threads, all on one model. Prints "<threads> <ns>" lines.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "server/metrics/model_metrics.h"

namespace {

using tensord::Clock;
using tensord::server::ModelMetrics;
using tensord::server::RequestTimes;

constexpr int kRequests = 200'000;

// Counts one request as the server does; durations vary, so that they fall into different buckets.
void count_request(ModelMetrics& metrics, int64_t now_ns, int64_t i) {
  const int64_t spread = (i * 7919) % 4096 * 37;
  const RequestTimes times{.arrived_ns = now_ns - 90'000 - 3 * spread,
                           .queue_start_ns = now_ns - 80'000 - 3 * spread,
                           .compute_start_ns = now_ns - 60'000 - 2 * spread,
                           .compute_input_end_ns = now_ns - 58'000 - 2 * spread,
                           .compute_output_start_ns = now_ns - 8'000 - spread,
                           .compute_end_ns = now_ns - 7'000};
  metrics.add_received(1100);
  metrics.add_in_flight(1);
  metrics.add_pending(1);
  metrics.add_pending(-1);
  metrics.count_execution(1, times);
  metrics.add_copied(0);
  metrics.add_sent(1100);
  metrics.count_answer(times, 0);
  metrics.add_in_flight(-1);
}

// CPU time of the calling thread, so that other load on the machine is not counted.
int64_t processor_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

double ns_per_request(int threads) {
  ModelMetrics metrics("m", "1");
  std::vector<std::thread> workers;
  std::vector<double> ns(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&metrics, &result = ns[static_cast<size_t>(t)]] {
      const int64_t now_ns = Clock::system().now_ns(), start_ns = processor_ns();
      for (int i = 0; i < kRequests; ++i) count_request(metrics, now_ns, i);
      result = static_cast<double>(processor_ns() - start_ns) / kRequests;
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::sort(ns.begin(), ns.end());
  return ns[ns.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int max = argc > 1 ? std::atoi(argv[1]) : static_cast<int>(std::thread::hardware_concurrency());
  for (const int threads : {1, max}) {
    double best = ns_per_request(threads);
    for (int round = 0; round < 6; ++round) best = std::min(best, ns_per_request(threads));
    std::printf("%d %.0f\n", threads, best);
  }
}
