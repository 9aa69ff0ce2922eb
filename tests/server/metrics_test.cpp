#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "core/base/clock.h"
#include "server/metrics/process_collector.h"

namespace tensord::server::metrics_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kOk = 0, kCancelled = 1, kInvalid = 3, kUnavailable = 14;

// A request that took 10 us until it was queued, 200 us in the queue, and 30, 400 and 50 us in its run.
RequestTimes times_of_run() {
  const int64_t now_ns = Clock::system().now_ns();
  return {.arrived_ns = now_ns - 690'000,
          .queue_start_ns = now_ns - 680'000,
          .compute_start_ns = now_ns - 480'000,
          .compute_input_end_ns = now_ns - 450'000,
          .compute_output_start_ns = now_ns - 50'000,
          .compute_end_ns = now_ns};
}

RequestTimes times_in_queue() {
  RequestTimes times = times_of_run();
  times.compute_start_ns = times.compute_input_end_ns = times.compute_output_start_ns = times.compute_end_ns = 0;
  return times;
}

TEST(DurationIntervals, LieInOneBucketOfBothKinds) {
  for (size_t i = 0; i < kDurationIntervals; ++i) {
    IntervalCounts counts{};
    counts[i] = 7;
    const ClassicCounts classic = to_classic(counts);
    const NativeCounts native = to_native(counts);
    EXPECT_EQ(std::count(classic.buckets.begin(), classic.buckets.end(), 7), 1) << i;
    EXPECT_EQ(std::count(native.buckets.begin(), native.buckets.end(), 7) + (native.zero_count == 7), 1) << i;
  }
}

// Compared with the bucket computed by logarithms, for durations over the whole range.
TEST(DurationIntervals, AreThoseOfTheLimits) {
  for (double exponent = 1; exponent < 12; exponent += 0.00371) {
    const auto ns = static_cast<int64_t>(std::pow(10.0, exponent));
    const double seconds = static_cast<double>(ns) * 1e-9;
    IntervalCounts counts{};
    counts[duration_interval(ns)] = 1;
    const ClassicCounts classic = to_classic(counts);
    size_t wanted = 0;
    while (wanted < kClassicBuckets && seconds > classic_limits()[wanted]) ++wanted;
    EXPECT_EQ(classic.buckets[wanted], 1u) << ns;
    const NativeCounts native = to_native(counts);
    const auto index = static_cast<int>(std::ceil(std::log2(seconds) * (1 << kNativeSchema)));
    if (index < kFirstNativeIndex) {
      EXPECT_EQ(native.zero_count, 1u) << ns;
    } else {
      EXPECT_EQ(native.buckets[std::min<size_t>(static_cast<size_t>(index - kFirstNativeIndex), kNativeBuckets)], 1u)
          << ns;
    }
  }
  EXPECT_EQ(duration_interval(-5), duration_interval(0));
  EXPECT_EQ(duration_interval(INT64_MAX), kDurationIntervals - 1);
}

TEST(ModelMetrics, CountsRequestsAsTritonsStatisticsDo) {
  ModelMetrics metrics("m", "3");
  const RequestTimes times = times_of_run();
  metrics.count_execution(6, times);
  for (int i = 0; i < 3; ++i) metrics.count_answer(times, kOk);  // they shared the run
  metrics.count_execution(6, times, /*is_success=*/false);
  metrics.count_answer(times, kInvalid);
  metrics.count_answer(times_in_queue(), kUnavailable);
  metrics.count_answer(times_in_queue(), kCancelled);
  metrics.count_answer({.arrived_ns = times.arrived_ns}, kInvalid);

  const ModelCounts counts = metrics.counts();
  EXPECT_EQ(counts.name, "m");
  EXPECT_EQ(counts.version, "3");
  EXPECT_EQ(counts.success.count, 3u);
  EXPECT_EQ(counts.fail.count, 4u);
  EXPECT_GE(counts.success.ns, 3 * 690'000u);
  EXPECT_EQ(counts.queue.count, 3u);
  EXPECT_EQ(counts.queue.ns, 600'000u);
  EXPECT_EQ(counts.compute_input.ns, 90'000u);
  EXPECT_EQ(counts.compute_infer.ns, 1'200'000u);
  EXPECT_EQ(counts.compute_output.ns, 150'000u);
  EXPECT_EQ(counts.compute_output.count, 3u);
  EXPECT_EQ(counts.inference_count, 6u);
  EXPECT_EQ(counts.execution_count, 1u);
  EXPECT_EQ(counts.failed_executions, 1u);
  EXPECT_EQ(counts.failures, (std::array<uint64_t, kFailureReasons>{1, 1, 1, 1}));
  ASSERT_EQ(counts.batches.size(), 1u);
  EXPECT_EQ(counts.batches.at(6).infer_ns, 400'000u);
  // Histograms count all queued requests, but each run once.
  EXPECT_EQ(counts[Phase::kRequest].count(), 7u);
  EXPECT_EQ(counts[Phase::kQueue].count(), 6u);
  EXPECT_EQ(counts[Phase::kCompute].count(), 1u);
  EXPECT_EQ(counts[Phase::kCompute].sum_ns, 400'000u);
  const auto unix_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  EXPECT_NEAR(static_cast<double>(counts.last_request_unix_ms), static_cast<double>(unix_ms), 5000);
}

TEST(ModelMetrics, KeepsTheLastFailureButNoCancellation) {
  ModelMetrics metrics("m", "3");
  metrics.count_answer(times_of_run(), kOk, "no error");
  EXPECT_EQ(metrics.counts().last_failure.unix_ms, 0u);
  metrics.count_answer(times_of_run(), kInvalid, "first");
  metrics.count_answer(times_of_run(), kInvalid, std::string(kMaxErrorBytes + 1, 'x'));
  metrics.count_answer(times_of_run(), kCancelled, "cancelled");
  const LastFailure failure = metrics.counts().last_failure;
  EXPECT_EQ(failure.error, std::string(kMaxErrorBytes, 'x'));
  EXPECT_GT(failure.unix_ms, 0u);
}

TEST(ProcessUsage, IsOfThisProcess) {
  const ProcessUsage usage = process_usage();
  EXPECT_GT(usage.resident_bytes, 1'000'000u);
  EXPECT_LE(usage.file_bytes, usage.resident_bytes);
  EXPECT_LE(usage.resident_bytes, usage.virtual_bytes);
  std::atomic<bool> is_over{false};
  std::thread another([&] { is_over.wait(false); });
  EXPECT_GE(process_usage().threads, 2);
  is_over = true;
  is_over.notify_all();
  another.join();
}

TEST(ModelMetrics, BatchSizesAreToldApartUpToALimit) {
  ModelMetrics metrics("m", "1");
  const RequestTimes times = times_of_run();
  for (const int64_t size : {1, 64, 65, 1000, 1000}) metrics.count_execution(size, times);
  EXPECT_EQ(metrics.counts().batches.at(1000).count, 2u);
  EXPECT_EQ(metrics.counts().inference_count, 2130u);
  // A client that sends every possible size does not fill the memory.
  for (int64_t size = 65; size < 5000; ++size) metrics.count_execution(size, times);
  const ModelCounts counts = metrics.counts();
  EXPECT_LT(counts.batches.size(), 300u);
  EXPECT_GT(counts.batches.at(4096).count, 1000u);
}

TEST(ModelMetrics, ThreadsLoseNothing) {
  ModelMetrics metrics("m", "1");
  const RequestTimes times = times_of_run();
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        metrics.add_in_flight(1);
        metrics.count_execution(2, times);
        metrics.count_answer(times, kOk);
        metrics.add_in_flight(-1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const ModelCounts counts = metrics.counts();
  EXPECT_EQ(counts.success.count, 20'000u);
  EXPECT_EQ(counts.inference_count, 40'000u);
  EXPECT_EQ(counts[Phase::kQueue].count(), 20'000u);
  EXPECT_EQ(counts.in_flight, 0);
}

TEST(ModelMetrics, ResponsesOfDecoupledModels) {
  ModelMetrics metrics("m", "1");
  const RequestTimes times = times_of_run();
  for (uint64_t i = 0; i < 3; ++i) metrics.count_response(i, times, times.arrived_ns, kOk, /*is_empty=*/false);
  metrics.count_response(3, times, times.arrived_ns, kOk, /*is_empty=*/true);
  metrics.count_response(0, times, times.arrived_ns, kCancelled, /*is_empty=*/false);
  metrics.count_response(1, times, times.arrived_ns, kInvalid, /*is_empty=*/false);
  metrics.count_response(uint64_t{1} << 60, times, times.arrived_ns, kOk, /*is_empty=*/false);
  const ModelCounts counts = metrics.counts();
  ASSERT_EQ(counts.responses.size(), 1024u);
  EXPECT_EQ(counts.responses[0].success.count, 1u);
  EXPECT_EQ(counts.responses[0].cancel.count, 1u);
  EXPECT_EQ(counts.responses[0].compute_infer.ns, 400'000u);
  EXPECT_EQ(counts.responses[1].fail.count, 1u);
  EXPECT_EQ(counts.responses[3].empty_response.count, 1u);
  EXPECT_EQ(counts.responses[1023].success.count, 1u);
  EXPECT_EQ(counts[Phase::kFirstResponse].count(), 1u);
  EXPECT_EQ(counts[Phase::kNextResponse].count(), 3u);
}

// The value of a series without labels.
double value_of(const std::string& text, const std::string& name) {
  const size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

TEST(Metrics, LimitsOfTheProcess) {
  const std::string text = Metrics("1.0").text();
  EXPECT_GE(value_of(text, "process_max_fds"), value_of(text, "process_open_fds"));
  EXPECT_GE(value_of(text, "tensord_memory_limit_bytes"), value_of(text, "process_resident_memory_bytes"));
  EXPECT_GT(value_of(text, "process_resident_memory_bytes"), 0);
  EXPECT_GE(value_of(text, "tensord_cpu_limit_cores"), 1);
}

TEST(Metrics, PassesThatFailed) {
  Metrics metrics("1.0");
  metrics.model("m", "1");
  PlanCounts counts;
  metrics.watch_plans("m", "1", [&] { return counts; });
  EXPECT_THAT(metrics.text(), Not(HasSubstr("tensord_pass_failed_total")));
  counts.failed_passes = {{"cse", 2}, {"plan", 1}};
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("tensord_pass_failed_total{model=\"m\",version=\"1\",pass=\"cse\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("tensord_pass_failed_total{model=\"m\",version=\"1\",pass=\"plan\"} 1\n"));
}

// Of what is switched off there are no series, and of requests to models that are not there only those that count them.
TEST(Metrics, WhatIsOffHasNoSeries) {
  Metrics metrics("1.0");
  metrics.count_load("m", true);
  ModelMetrics& model = metrics.model("m", "1");
  PlanCounts plans;
  metrics.watch_plans("m", "1", [&] { return plans; });
  metrics.unknown_model().count_answer(times_in_queue(), kInvalid);
  const std::string off = metrics.text();
  for (const char* name : {"tensord_cache_", "tensord_model_evictions_total", "tensord_plan", "tensord_training_",
                           "tensord_grpc_", "tensord_certificate_", "tensord_first_response_"}) {
    EXPECT_THAT(off, Not(HasSubstr(name))) << name;
  }
  EXPECT_THAT(off, HasSubstr("tensord_requests_total{model=\"\",version=\"\",code=\"INVALID_ARGUMENT\"} 1\n"));
  EXPECT_THAT(off, HasSubstr("tensord_request_duration_seconds_count{model=\"\",version=\"\"} 1\n"));
  for (const char* name : {"tensord_batch_size_count", "tensord_compute_duration_seconds_count", "tensord_model_ready",
                           "tensord_executions_total", "tensord_pending_requests"}) {
    EXPECT_THAT(off, HasSubstr(concat(name, "{model=\"m\"")));
    EXPECT_THAT(off, Not(HasSubstr(concat(name, "{model=\"\"")))) << name;
  }
  model.set_has_cache(true);
  plans.are_made = true;
  metrics.add_evictions();
  metrics.count_load("n", true);
  const std::string on = metrics.text();
  for (const char* line :
       {"tensord_cache_hits_total{model=\"m\",version=\"1\"} 0\n",
        "tensord_cache_misses_total{model=\"m\",version=\"1\"} 0\n", "tensord_plans{model=\"m\",version=\"1\"} 0\n",
        "tensord_model_evictions_total{model=\"n\"} 0\n"}) {
    EXPECT_THAT(on, HasSubstr(line));
  }
}

TEST(Metrics, TritonsNamesOnlyWhenWanted) {
  Metrics metrics("1.0");
  ModelMetrics& model = metrics.model("m", "1");
  model.set_tags({{"team", "search"}});
  model.count_execution(4, times_of_run());
  model.count_answer(times_of_run(), kOk);
  model.count_answer(times_in_queue(), kUnavailable);
  model.count_cache_hit(5000);
  model.set_has_cache(true);
  model.add_pending(2);
  model.set_workers(3);
  const std::string own = metrics.text();
  EXPECT_THAT(own, HasSubstr("tensord_requests_total{model=\"m\",version=\"1\",_team=\"search\",code=\"OK\"} 1"));
  EXPECT_THAT(own, HasSubstr("tensord_pending_requests{model=\"m\",version=\"1\",_team=\"search\"} 2"));
  EXPECT_THAT(own, HasSubstr("tensord_batch_size_sum{model=\"m\",version=\"1\",_team=\"search\"} 4"));
  EXPECT_THAT(own, HasSubstr("tensord_model_workers{model=\"m\",version=\"1\",_team=\"search\"} 0"));
  EXPECT_THAT(own, Not(HasSubstr("nv_")));
  EXPECT_THAT(own, Not(HasSubstr("tensord_first_response_duration_seconds")));

  model.set_ready(true);
  EXPECT_THAT(metrics.text(), HasSubstr("tensord_model_workers{model=\"m\",version=\"1\",_team=\"search\"} 3"));

  metrics.add_triton_names();
  const std::string both = metrics.text();
  const std::string labels = "{_team=\"search\",model=\"m\",version=\"1\"} ";
  for (const auto& [name, value] : {std::pair{"nv_inference_request_success", "1"},
                                    {"nv_inference_count", "4"},
                                    {"nv_inference_exec_count", "1"},
                                    {"nv_inference_queue_duration_us", "200"},
                                    {"nv_inference_compute_input_duration_us", "30"},
                                    {"nv_inference_compute_infer_duration_us", "400"},
                                    {"nv_inference_compute_output_duration_us", "50"},
                                    {"nv_cache_num_hits_per_model", "1"},
                                    {"nv_cache_hit_duration_per_model", "5"},
                                    {"nv_inference_pending_request_count", "2"}}) {
    EXPECT_THAT(both, HasSubstr(std::string("\n") + name + labels + value + "\n"));
  }
  EXPECT_THAT(both, HasSubstr("nv_inference_request_failure{_team=\"search\",model=\"m\",reason=\"REJECTED\","
                              "version=\"1\"} 1"));
  metrics.model("plain", "1").count_cache_hit(5000);
  EXPECT_THAT(metrics.text(), Not(HasSubstr("nv_cache_num_hits_per_model{model=\"plain\"")));
  EXPECT_THAT(both, HasSubstr("\nnv_cpu_memory_total_bytes "));
  EXPECT_THAT(own, Not(HasSubstr("\nprocess_resident_memory_bytes 0\n")));
}

}  // namespace
}  // namespace tensord::server::metrics_test
