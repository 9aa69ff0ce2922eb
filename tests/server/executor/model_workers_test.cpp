// How the workers of a model are warmed up, and which warnings they log.
#include "server/executor/model/model_workers.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "tests/server/error_of.h"
#include "tests/server/fake_models.h"
#include "tests/server/fake_sink.h"

namespace {

std::atomic<bool> has_no_threads = false;

}  // namespace

// Interposes the C library's function for the whole program.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return has_no_threads ? EAGAIN : real(thread, attributes, run, argument);
}

namespace tensord::server::model_workers_test {
namespace {

using fixtures::float_tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ModelWorkersTest : public ::testing::Test {
 protected:
  // Warnings of a model with these outputs.
  std::vector<std::string> warnings(std::vector<InferTensor> outputs) const {
    const fixtures::FakeModel model(signature_, [&](const auto&, const auto&) {
      RunResult result;
      result.outputs = outputs;
      return result;
    });
    ModelWorkers workers("m", model, {.warmup = {{.name = "one"}}}, {});
    workers.warm_up();
    return workers.warnings();
  }
  // Counts the runs of a model that executes `work`.
  int runs_of(const std::function<void()>& work, std::vector<WarmupRequest> requests, int count = 1,
              int threads = 1) const {
    std::atomic<int> runs = 0;
    const fixtures::FakeModel model(signature_, [&](const auto&, const auto&) {
      ++runs;
      work();
      return RunResult();
    });
    ModelWorkers workers("m", model, {.workers = count, .threads_per_worker = threads, .warmup = std::move(requests)},
                         {});
    workers.warm_up();
    return runs;
  }

  Signature signature_ = fixtures::signature_of({}, {"y"});
};

TEST_F(ModelWorkersTest, ShapesThatAreNotThoseOfTheConfiguration) {
  EXPECT_THAT(warnings({float_tensor("y", {2, 3}, {})}), IsEmpty()) << "nothing is said of its shape";
  signature_.outputs[0].shape = Dims{-1, 3};
  EXPECT_THAT(warnings({float_tensor("y", {2, 3}, {})}), IsEmpty());
  EXPECT_THAT(warnings({float_tensor("z", {2, 4}, {})}), IsEmpty());
  EXPECT_THAT(warnings({float_tensor("y", {2, 4}, {})}),
              ElementsAre("output 'y' has shape [2, 4], but config.pbtxt says [-1, 3]"));
  EXPECT_THAT(warnings({float_tensor("y", {2}, {})}), ElementsAre(HasSubstr("[2], but")));
  signature_.max_batch_size = 4;
  EXPECT_THAT(warnings({float_tensor("y", {2, 4}, {})}),
              ElementsAre("output 'y' has shape [2, 4], but config.pbtxt says [-1, 3], the batch among them"));
  signature_.outputs[0].shape = Dims{0, 3};
  EXPECT_THAT(warnings({float_tensor("y", {2, 3}, {})}), ElementsAre(HasSubstr("[0, 3]")));
  signature_.outputs.clear();
  EXPECT_THAT(warnings({float_tensor("y", {2, 3}, {})}), IsEmpty());
}

TEST_F(ModelWorkersTest, LargeBatchesOfASlowModelAreLeftOut) {
  const auto slow = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  const auto requests = [](bool is_configured) {
    return std::vector<WarmupRequest>{{.name = "1", .is_configured = is_configured},
                                      {.name = "large", .batch_size = 1'000'000, .is_configured = is_configured},
                                      {.name = "2", .batch_size = 2, .is_configured = is_configured}};
  };
  EXPECT_EQ(runs_of(slow, requests(false)), 2);
  EXPECT_EQ(runs_of(slow, requests(true)), 3);
}

TEST_F(ModelWorkersTest, EveryWorkerRunsEachRequest) {
  for (const int workers : {1, 2, 7}) {
    EXPECT_EQ(runs_of([] {}, {{.name = "a", .count = 3}, {.name = "b"}}, workers), 4 * workers);
  }
}

TEST_F(ModelWorkersTest, WhereThereIsNoOtherThread) {
  // A new thread, because a thread that has had a team need not prove it again.
  std::thread([&] {
    has_no_threads = true;
    EXPECT_EQ(runs_of([] {}, {{.name = "a"}}, /*count=*/5), 5) << "the one that is there does it all";
    EXPECT_THAT(error_of([&] { runs_of([] {}, {{.name = "a"}}, 1, /*threads=*/2); }).what(),
                HasSubstr("a worker is to have 2 threads, but the process gets 1"));
    has_no_threads = false;
    EXPECT_EQ(runs_of([] {}, {{.name = "a"}}, 1, /*threads=*/2), 1);
  }).join();
}

TEST_F(ModelWorkersTest, UnusedMemoryIsGivenBackEverMoreSeldom) {
  const auto releases = [&](std::vector<WarmupRequest> warmup, int answers) {
    const fixtures::FakeModel model(signature_, [](const auto&, const auto&) { return RunResult(); });
    ModelWorkers workers("m", model, {.warmup = std::move(warmup)}, {});
    workers.warm_up();
    workers.end_warm_up();
    for (int i = 0; i < answers; ++i) workers.record_answered();
    return model.releases();
  };
  EXPECT_EQ(releases({}, 0), 0);
  EXPECT_EQ(releases({{.name = "one"}}, 0), 1) << "after the warm-up";
  EXPECT_EQ(releases({}, 1), 1);
  EXPECT_EQ(releases({}, 3), 2);
  EXPECT_EQ(releases({}, 9), 4) << "after the first, second, fourth and eighth";
  signature_.keeps_state = true;
  EXPECT_EQ(releases({}, 9), 0) << "its sequences give back theirs";
}

TEST_F(ModelWorkersTest, WhatFailsIsSaid) {
  const auto fails = [](ErrorCode code) { return [code] { fail(code, "no"); }; };
  EXPECT_THAT(error_of([&] { runs_of(fails(ErrorCode::kScriptRaised), {{.name = "a"}}); }).what(),
              HasSubstr("model_warmup 'a': no"));
  const WarmupRequest zeros{.name = "batch 1", .is_configured = false};
  EXPECT_EQ(runs_of(fails(ErrorCode::kScriptRaised), {zeros, zeros}), 1);
  for (const ErrorCode code : {ErrorCode::kUnimplemented, ErrorCode::kFailedPrecondition}) {
    EXPECT_THAT(error_of([&] { runs_of(fails(code), {zeros}); }).what(), HasSubstr("met by the warm-up with zeros"));
  }
  // Also for workers after the first one.
  std::atomic<int> run = 0;
  const auto later = [&] { check(++run < 3, "the third"); };
  EXPECT_THAT(error_of([&] { runs_of(later, {{.name = "a"}}, 4); }).what(), HasSubstr("the third"));
}

}  // namespace
}  // namespace tensord::server::model_workers_test
