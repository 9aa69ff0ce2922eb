// Every failure is one clear error on every rank, in time.
#include <atomic>
#include <thread>

#include "tests/distributed/ranks.h"

namespace tensord::distributed::failures_test {
namespace {

using namespace fixtures;
using Clock = std::chrono::steady_clock;

Tensor zeros(Dims sizes, DType dtype = DType::kFloat32) {
  const Tensor tensor = Tensor::empty(sizes, dtype);
  fill(tensor, [](int64_t) { return 0.0; });
  return tensor;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Caught {
  ErrorCode code = ErrorCode::kInternal;
  std::string text;
};

template <class Fn>
Caught caught(const Fn& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::kInternal, "no error"};
}

class Failures : public ::testing::TestWithParam<std::string> {
 protected:
  // The error of each rank; all of them end within the time.
  std::vector<std::string> errors(int size, const GroupOptions& options, const std::function<void(ProcessGroup&)>& fn,
                                  Milliseconds max) {
    const auto start = Clock::now();
    auto all = errors_of_ranks(size, backends_of(GetParam()), options, fn);
    EXPECT_LT(Clock::now() - start, max);
    return all;
  }
};

struct Difference {
  std::string name, first, second;  // the operations' own descriptions
  std::function<WorkPtr(ProcessGroup&, bool is_odd)> start;
};

std::vector<Difference> differences() {
  return {
      {"shape", "float32[2, 3]", "float32[3, 2]",
       [](ProcessGroup& group, bool odd) {
         return group.all_reduce(zeros(odd ? Dims{3, 2} : Dims{2, 3}));
       }},
      {"dtype", "float32[4]", "int32[4]",
       [](ProcessGroup& group, bool odd) {
         return group.all_reduce(zeros({4}, odd ? DType::kInt32 : DType::kFloat32));
       }},
      {"op", "sum", "max",
       [](ProcessGroup& group, bool odd) { return group.all_reduce(zeros({4}), odd ? kMax : kSum); }},
      {"root", "root 0", "root 1",
       [](ProcessGroup& group, bool odd) { return group.broadcast(zeros({4}), odd ? 1 : 0); }},
      {"operation", "all_reduce", "broadcast",
       [](ProcessGroup& group, bool odd) {
         return odd ? group.broadcast(zeros({4}), 0) : group.all_reduce(zeros({4}));
       }},
      {"size", "float32[1000000]", "float32[1]",
       [](ProcessGroup& group, bool odd) { return group.broadcast(zeros({odd ? 1 : 1'000'000}), 0); }},
  };
}

TEST_P(Failures, RanksThatDifferAreToldSo) {
  for (const bool is_checked : {true, false}) {
    for (const Difference& difference : differences()) {
      const GroupOptions options{
          .timeout = 600s, .checked_first = is_checked ? 16u : 0u, .checked_every = 0, .stall = 100ms};
      const auto all = errors(
          3, options,
          [&](ProcessGroup& group) {
            group.barrier()->wait();
            const Tensor untouched = zeros({2});
            const WorkPtr work = difference.start(group, group.rank() == 1);
            const WorkPtr next = group.all_reduce(untouched);
            const Caught own = caught([&] { work->wait(); });
            // A rank that had nothing to wait for, such as a root, gets the error in its next operation.
            const Caught error = caught([&] { next->wait(); });
            EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << error.text;
            EXPECT_TRUE(own.text == error.text || (!is_checked && own.text == "no error")) << own.text;
            EXPECT_EQ(caught([&] { group.barrier()->wait(); }).text, error.text);
            throw Error(error.code, error.text);
          },
          300s);
      const std::string what = difference.name + (is_checked ? ", checked" : ", unchecked");
      for (const std::string& text : all) {
        EXPECT_EQ(text, all.front()) << what;
        EXPECT_TRUE(has(text, "Detected mismatch")) << what << ": " << text;
        EXPECT_TRUE(has(text, "number 2")) << what << ": " << text;
        EXPECT_TRUE(has(text, "rank 1 runs")) << what << ": " << text;
        EXPECT_TRUE(has(text, difference.first) && has(text, difference.second)) << what << ": " << text;
      }
    }
  }
}

TEST_P(Failures, ARankThatDoesNotComeIsNamed) {
  const auto all = errors(
      3, {.timeout = 2s},
      [&](ProcessGroup& group) {
        group.barrier()->wait();
        if (group.rank() == 1) {
          while (!group.failure()) std::this_thread::sleep_for(5ms);
          throw *group.failure();
        }
        const Caught error = caught([&] { group.all_reduce(zeros({4}))->wait(); });
        EXPECT_EQ(error.code, ErrorCode::kDeadlineExceeded) << error.text;
        throw Error(error.code, error.text);
      },
      300s);
  for (const std::string& text : all) {
    EXPECT_EQ(text, all.front());
    EXPECT_TRUE(has(text, "all_reduce number 2, float32[4], sum")) << text;
    EXPECT_TRUE(has(text, "not there: rank 1")) << text;
  }
}

TEST_P(Failures, AnAbortOfOneEndsAll) {
  const auto all = errors(
      4, {.timeout = 600s},
      [&](ProcessGroup& group) {
        group.barrier()->wait();
        if (group.rank() == 2) {
          std::this_thread::sleep_for(100ms);
          group.abort("the disk is full");
          throw *group.failure();
        }
        group.all_reduce(zeros({4}))->wait();
      },
      300s);
  for (const std::string& text : all) {
    EXPECT_EQ(text, "group test was aborted by rank 2: the disk is full");
  }
}

TEST_P(Failures, WhoLeavesEndsWhatOthersWaitFor) {
  const auto all = errors(
      3, {.timeout = 600s},
      [&](ProcessGroup& group) {
        group.barrier()->wait();
        std::this_thread::sleep_for(100ms);
        if (group.rank() == 1) throw Error(ErrorCode::kScriptRaised, "this rank has had enough");
        group.all_reduce(zeros({4}))->wait();
      },
      300s);
  EXPECT_EQ(all[1], "this rank has had enough");
  for (const int rank : {0, 2}) EXPECT_TRUE(has(all[static_cast<size_t>(rank)], "all_reduce number 2")) << all[0];
}

TEST_P(Failures, MessagesThatDoNotFitAreAnErrorOfBoth) {
  for (const auto& [sent, wanted] : {std::pair{zeros({4}), zeros({4}, DType::kInt32)}, {zeros({1000}), zeros({4})}}) {
    const auto all = errors(
        2, {.timeout = 600s},
        [&, sent = sent, wanted = wanted](ProcessGroup& group) {
          group.barrier()->wait();
          group.rank() == 0 ? group.send(sent, 1)->wait() : group.recv(wanted, 0)->wait();
          group.barrier()->wait();
        },
        300s);
    for (const std::string& text : all) {
      EXPECT_TRUE(has(text, "recv from rank 0")) << text;
      EXPECT_TRUE(has(text, "rank 0 sends")) << text;
    }
  }
}

TEST_P(Failures, PartsThatDoNotFitAreAnErrorOfAll) {
  const auto all = errors(
      2, {.timeout = 600s},
      [&](ProcessGroup& group) {
        // Rank 1 expects more rows than rank 0 sends.
        const std::vector<int64_t> in{2, 2}, out{group.rank() == 1 ? 3 : 2, 2};
        group.all_to_all_single(zeros({out[0] + out[1], 2}), zeros({4, 2}), out, in)->wait();
      },
      300s);
  for (const std::string& text : all) EXPECT_TRUE(has(text, "rank 0 sends 16 bytes, expected 24")) << text;
}

TEST_P(Failures, AMessageThatDoesNotComeIsADeadline) {
  const auto all = errors(
      2, {.timeout = 600s},
      [&](ProcessGroup& group) {
        if (group.rank() == 1) group.recv(zeros({4}), 0, 0, 200ms)->wait();
        if (group.rank() == 0) group.all_reduce(zeros({4}))->wait();
      },
      300s);
  for (const std::string& text : all) EXPECT_TRUE(has(text, "recv from rank 0")) << text;
}

TEST_P(Failures, AShortWaitLeavesTheOperationAlone) {
  on_ranks(2, backends_of(GetParam()), [](ProcessGroup& group) {
    group.barrier()->wait();
    const Tensor one = Tensor::scalar<int64_t>(1);
    if (group.rank() == 1) std::this_thread::sleep_for(300ms);
    const WorkPtr work = group.all_reduce(one);
    if (group.rank() == 0) {
      const Caught error = caught([&] { work->wait(50ms); });
      EXPECT_EQ(error.code, ErrorCode::kDeadlineExceeded);
      EXPECT_TRUE(has(error.text, "Operation timed out!")) << error.text;
      EXPECT_FALSE(work->is_done());
    }
    work->wait();
    EXPECT_EQ(one.item_int(), 2);
  });
}

TEST_P(Failures, WrongArgumentsEndNothing) {
  on_ranks(2, backends_of(GetParam()), [](ProcessGroup& group) {
    const auto text = [](const auto& fn) { return caught(fn).text; };
    const Tensor four = zeros({4}), whole = zeros({4}, DType::kInt32);
    EXPECT_TRUE(has(text([&] { group.broadcast(four, 2); }), "the root is rank 2, expected 0 to 1"));
    EXPECT_TRUE(has(text([&] { group.all_reduce(Tensor()); }), "undefined"));
    EXPECT_TRUE(has(text([&] { group.all_reduce(Tensor::meta(Dims{4}, DType::kFloat32)); }), "meta"));
    const Tensor spread = four.as_view(Dims{3, 4}, Dims{0, 1}, 0), windows = four.as_view(Dims{3, 2}, Dims{1, 1}, 0);
    EXPECT_TRUE(has(text([&] { group.all_reduce(spread); }), "share memory"));
    EXPECT_TRUE(has(text([&] { group.all_reduce(windows); }), "share memory"));
    EXPECT_TRUE(has(text([&] { group.all_gather({four}, four); }), "expected one for each of 2 ranks"));
    EXPECT_TRUE(has(text([&] { group.all_gather({four, whole}, four); }), "int32, expected float32"));
    EXPECT_TRUE(has(text([&] { group.all_gather_into_tensor(zeros({7}), four); }), "7 elements, expected 2 times"));
    EXPECT_TRUE(has(text([&] { group.reduce_scatter_tensor(four, zeros({7})); }), "7 elements, expected 2 times"));
    EXPECT_TRUE(has(text([&] { group.all_reduce_coalesced({four, whole}); }), "int32, expected float32"));
    EXPECT_TRUE(has(text([&] { group.all_reduce(whole, kAvg); }), "avg"));
    EXPECT_TRUE(has(text([&] { group.all_reduce(four, kBxor); }), "non-integral dtype float32"));
    EXPECT_TRUE(has(text([&] { group.all_reduce(zeros({2}, DType::kComplex64), kMax); }), "no order"));
    EXPECT_TRUE(has(text([&] { group.all_to_all_single(zeros({3}), zeros({3})); }), "do not split"));
    EXPECT_TRUE(has(text([&] { group.send(four, group.rank()); }), "itself"));
    EXPECT_TRUE(has(text([&] { group.gather({four, zeros({5})}, four, group.rank()); }), "at index 1"));
    char bytes[16] = {};
    const Tensor fixed =
        Tensor::from_storage(wrap_storage(bytes, sizeof(bytes), {}, {}, false), Dims{4}, Dims{1}, 0, DType::kFloat32);
    EXPECT_TRUE(has(text([&] { group.all_reduce(fixed); }), "cannot be written"));
    // Inputs that are only read may have any of these layouts.
    const Tensor gathered = zeros({24});
    group.all_gather_into_tensor(gathered, spread)->wait();
    const uint32_t version = four.version();
    group.all_reduce(four)->wait();
    EXPECT_GT(four.version(), version) << "autograd does not see the write";
  });
}

TEST_P(Failures, MonitoredBarrier) {
  std::atomic<int> gave_up{0}, gave_up_again{0};
  on_ranks(3, backends_of(GetParam()), [&](ProcessGroup& group) {
    group.monitored_barrier();
    // The last rank arrives after the others have stopped waiting for it.
    while (group.rank() == 2 && gave_up < 2) std::this_thread::sleep_for(5ms);
    const Caught error = caught([&] { group.monitored_barrier(2s); });
    ++gave_up;
    EXPECT_EQ(error.code, ErrorCode::kDeadlineExceeded);
    EXPECT_TRUE(has(error.text, "Rank 2 failed to pass monitoredBarrier in 2000 ms")) << error.text;
    EXPECT_EQ(has(error.text, "successfully reached"), group.rank() != 0) << error.text;
    group.barrier()->wait();
    while (group.rank() != 0 && gave_up_again < 1) std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(has(caught([&] { group.monitored_barrier(2s, true); }).text, "Ranks 1, 2 failed"));
    ++gave_up_again;
  });
}

TEST_P(Failures, WhoDoesNotKnowTheSecretIsNoRank) {
  const auto store = std::make_shared<MemoryStore>(20s);
  const BackendFactory backends = backends_of(GetParam());
  std::vector<std::string> texts(3);
  std::vector<Thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back("rank", [&, rank] {
      texts[static_cast<size_t>(rank)] = caught([&] {
                                           ProcessGroup(store->clone(), "test", rank, 3, backends,
                                                        {.timeout = 5s, .secret = rank == 1 ? "guess" : "secret"});
                                         }).text;
    });
  }
  for (Thread& thread : threads) thread.join();
  EXPECT_TRUE(has(texts[0], "answers as rank 1 does not know the job's secret")) << texts[0];
  EXPECT_TRUE(has(texts[2], "answers as rank 1 does not know the job's secret")) << texts[2];
  EXPECT_NE(texts[1], "no error");
  on_ranks(3, backends, [](ProcessGroup& group) { group.barrier()->wait(); }, {.timeout = 20s, .secret = "secret"});
}

INSTANTIATE_TEST_SUITE_P(Backends, Failures, ::testing::ValuesIn(backend_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tensord::distributed::failures_test
