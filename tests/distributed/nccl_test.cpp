// The NCCL backend with a fake function table: its states, its streams, and each failure.
#include <gmock/gmock.h>

#include <latch>

#include "core/distributed/nccl/communicator.h"
#include "tests/distributed/on_device.h"

namespace tensord::distributed::nccl_test {
namespace {

using namespace fixtures;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Message = ProcessGroup::Message;
using State = NcclCommunicator::State;

constexpr NcclResult kErrors[] = {NcclResult::kUnhandledCudaError, NcclResult::kSystemError,
                                  NcclResult::kInternalError,      NcclResult::kInvalidArgument,
                                  NcclResult::kInvalidUsage,       NcclResult::kRemoteError};

SteadyTime in(Milliseconds time) { return std::chrono::steady_clock::now() + time; }

// Without comparing the first operations, for which the host waits.
GroupOptions unchecked(Milliseconds timeout = 20s) {
  return {.timeout = timeout, .checked_first = 0, .checked_every = 0};
}

Tensor full(double value, Dims sizes = {4}) {
  const Tensor tensor = empty(std::move(sizes));
  fill(tensor, [=](int64_t) { return value; });
  return tensor;
}
double first_of(const Tensor& tensor) { return values_of(tensor).at(0).real(); }

std::string message_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class Nccl : public ::testing::Test {
 protected:
  OnDevice device_;
};

// --- one communicator

TEST_F(Nccl, StatesOfACommunicator) {
  MemoryStore store(20s);
  fake_nccl::make_slow(5);
  NcclCommunicator communicator(fake_nccl::api());
  EXPECT_EQ(communicator.state(), State::kNone);
  const auto nothing = [](NcclComm) { return NcclResult::kSuccess; };
  EXPECT_THAT(message_of([&] { communicator.call("f", in(1s), nothing); }), HasSubstr("is not made, expected ready"));
  communicator.check_health();
  communicator.init(store, "id", 0, 1, in(20s));
  EXPECT_EQ(communicator.state(), State::kReady);
  EXPECT_THAT(message_of([&] { communicator.init(store, "id", 0, 1, in(1s)); }),
              HasSubstr("is ready, expected not made"));
  communicator.check_health();
  communicator.close(in(20s));
  EXPECT_EQ(communicator.state(), State::kClosed);
  communicator.abort();
  EXPECT_EQ(communicator.state(), State::kClosed);
  EXPECT_EQ(fake_nccl::counts().destroyed, 1);
}

TEST_F(Nccl, ACommunicatorThatHasFailedCanOnlyBeAborted) {
  MemoryStore store(20s);
  NcclCommunicator communicator(fake_nccl::api());
  communicator.init(store, "id", 0, 1, in(20s));
  const auto broken = [](NcclComm) { return NcclResult::kInternalError; };
  EXPECT_THAT(message_of([&] { communicator.call("ncclAllReduce", in(1s), broken); }),
              HasSubstr("nccl: ncclAllReduce: internal error (3): the fake's last words"));
  EXPECT_EQ(communicator.state(), State::kFailed);
  EXPECT_THAT(message_of([&] { communicator.call("ncclAllReduce", in(1s), broken); }), HasSubstr("is failed"));
  communicator.close(in(1s));
  EXPECT_EQ(communicator.state(), State::kFailed);
  communicator.abort();
  communicator.abort();
  EXPECT_EQ(communicator.state(), State::kAborted);
  EXPECT_EQ(fake_nccl::counts().aborted, 1);
}

TEST_F(Nccl, OneThatIsBeingMadeCanBeAborted) {
  MemoryStore store(20s);
  NcclCommunicator communicator(fake_nccl::api());
  std::string error;
  // Its other rank never arrives.
  Thread maker("maker", [&] { error = message_of([&] { communicator.init(store, "id", 0, 2, in(60s)); }); });
  while (fake_nccl::counts().made == 0) std::this_thread::yield();
  EXPECT_EQ(communicator.state(), State::kInitializing);
  communicator.abort();
  maker.join();
  EXPECT_EQ(communicator.state(), State::kAborted);
  EXPECT_THAT(error, HasSubstr("ended the group"));
  EXPECT_THAT(message_of([&] { communicator.init(store, "id", 0, 2, in(1s)); }), HasSubstr("ended the group"));
}

TEST_F(Nccl, OneWhoseOtherRanksDoNotComeIsTooLate) {
  MemoryStore store(20s);
  NcclCommunicator first(fake_nccl::api()), second(fake_nccl::api());
  EXPECT_THAT(message_of([&] { first.init(store, "id", 0, 2, in(50ms)); }),
              HasSubstr("ncclCommInitRankConfig: timed out waiting for other ranks"));
  EXPECT_THAT(message_of([&] { second.init(store, "other", 1, 2, in(50ms)); }), HasSubstr("rank 0's id"));
  EXPECT_EQ(second.state(), State::kFailed);
}

// --- groups

TEST_F(Nccl, WhatIsInProgressIsWaitedFor) {
  fake_nccl::make_slow(20);
  fake_nccl::make_calls_slow(3);
  on_ranks(3, fake_nccl_backends(), [](ProcessGroup& group) {
    const Tensor tensor = full(group.rank() + 1);
    group.all_reduce(tensor)->wait();
    EXPECT_EQ(first_of(tensor), 6);
  });
}

TEST_F(Nccl, AWaitOrdersTheStreamAndHoldsUpNoHost) {
  std::latch queued(1);
  on_ranks(
      2, fake_nccl_backends(),
      [&](ProcessGroup& group) {
        group.barrier()->wait();
        const Tensor tensor = full(group.rank() + 1), result = empty({4});
        if (group.rank() == 1) queued.wait();
        const WorkPtr work = group.all_reduce(tensor);
        work->wait();
        result.copy_from(tensor);
        if (group.rank() == 0) {
          // The other rank has not called yet.
          EXPECT_FALSE(work->is_done());
          EXPECT_THROW(work->wait(10ms), Error);
          queued.count_down();
        }
        EXPECT_EQ(first_of(result), 3);
        work->wait(20s);
        EXPECT_TRUE(work->is_done());
      },
      unchecked());
}

TEST_F(Nccl, MemoryIsNotGivenOutWhileTheGroupUsesIt) {
  std::latch queued(1);
  on_ranks(
      2, fake_nccl_backends(),
      [&](ProcessGroup& group) {
        group.barrier()->wait();
        if (group.rank() == 1) queued.wait();
        Tensor tensor = full(1, {1000});
        const void* const memory = tensor.raw_data();
        const WorkPtr work = group.all_reduce(tensor);
        work->wait();
        while (tensor.impl()->use_count() > 1) std::this_thread::yield();  // the group has released it
        tensor = {};
        if (group.rank() == 0) {
          const Tensor other = empty({1000});
          EXPECT_NE(other.raw_data(), memory);
          queued.count_down();
        }
        work->wait(20s);
      },
      unchecked());
}

TEST_F(Nccl, EachDeviceHasACommunicator) {
  on_ranks(2, fake_nccl_backends(), [](ProcessGroup& group) {
    for (const Device device : {late::kFirst, late::kSecond, late::kFirst}) {
      const auto stream = device_runtime(device).make_stream(device.index);
      const ContextPart<&ExecutionContext::stream> scope(stream.get());
      const Tensor tensor = Tensor::scalar<int64_t>(group.rank() + 1).to(device);
      group.all_reduce(tensor)->wait();
      EXPECT_EQ(tensor.item_int(), 3);
    }
  });
  EXPECT_EQ(fake_nccl::counts().made, 4);
  EXPECT_EQ(fake_nccl::counts().destroyed, 4) << "closed in order, none aborted";
}

TEST_F(Nccl, MessagesComeInOrder) {
  on_ranks(3, fake_nccl_backends(), [](ProcessGroup& group) {
    const int next = (group.rank() + 1) % 3, before = (group.rank() + 2) % 3;
    const Tensor sent = full(group.rank()), got = full(-1, {2, 2}).as_view({4}, {1}, 0);
    // Messages in a cycle, which would deadlock one after the other.
    for (const WorkPtr& work :
         group.start_messages({{Message::Way::kSend, sent, next, 7}, {Message::Way::kRecv, got, before, 7}})) {
      work->wait();
    }
    EXPECT_EQ(first_of(got), before);
    for (const double value : {5.0, 6.0}) {
      const Laid laid = laid_out({3, 2}, DType::kInt16, Layout::kTransposed, [=](int64_t) { return value; });
      if (group.rank() == 0) group.send(laid.tensor, 1)->wait();
      if (group.rank() != 1) continue;
      fill(laid.tensor, [](int64_t) { return 0.0; });
      const WorkPtr work = group.recv(laid.tensor, 0);
      work->wait(20s);
      EXPECT_EQ(work->source_rank(), 0);
      EXPECT_EQ(first_of(laid.tensor), value);
    }
  });
}

TEST_F(Nccl, AMessageThatDoesNotFitIsAnErrorOfBoth) {
  const auto expect = [](const Tensor& sent, uint32_t tag, const std::string& text) {
    const auto errors = errors_of_ranks(2, fake_nccl_backends(), {.timeout = 20s}, [&](ProcessGroup& group) {
      (group.rank() == 0 ? group.send(sent, 1, tag) : group.recv(full(0), 0))->wait(20s);
      group.barrier()->wait();
    });
    for (const std::string& error : errors) EXPECT_THAT(error, HasSubstr(text));
  };
  expect(full(1, {5}), 0, "rank 0 sends 5 of float32, tag 0, expected 4 of float32, tag 0");
  expect(full(1), 3, "rank 0 sends 4 of float32, tag 3, expected 4 of float32, tag 0");
}

TEST_F(Nccl, WhatNcclHasNotIsRefusedByName) {
  on_ranks(2, fake_nccl_backends(), [](ProcessGroup& group) {
    const auto refused = [&](const std::function<WorkPtr()>& start) { return message_of([&] { start(); }); };
    const Tensor host = Tensor::empty(Dims{4}, DType::kFloat32), tensor = full(1);
    EXPECT_THAT(refused([&] { return group.all_reduce(host); }),
                HasSubstr("all_reduce: tensor is on cpu, expected memory of a device of privateuseone"));
    EXPECT_THAT(refused([&] { return group.all_gather_into_tensor(empty({8}), host); }), HasSubstr("input is on cpu"));
    EXPECT_THAT(refused([&] { return group.all_reduce(empty({4}, DType::kInt16)); }),
                HasSubstr("all_reduce: NCCL does not reduce int16"));
    EXPECT_THAT(refused([&] { return group.reduce(empty({4}, DType::kInt32), 0, kBand); }),
                HasSubstr("reduce: cannot use band with NCCL"));
    EXPECT_THAT(refused([&] { return group.all_reduce(empty({4}, DType::kComplex64), kProduct); }),
                HasSubstr("product on complex tensors (complex64)"));
    EXPECT_THAT(refused([&] { return group.recv(tensor, ProcessGroup::kAnyRank); }), HasSubstr("from any rank"));
    const Tensor other = tensor.to(late::kSecond);
    EXPECT_THAT(refused([&] {
                  return group.all_reduce_coalesced({tensor, other});
                }),
                HasSubstr("a tensor is on privateuseone:1, expected privateuseone:0"));
    // None of these has ended the group.
    group.all_reduce(tensor)->wait();
    EXPECT_EQ(first_of(tensor), 2);
  });
}

// --- failures

// Each function of NCCL that a group calls.
void run_everything(ProcessGroup& group) {
  const int size = group.size(), rank = group.rank();
  group.barrier()->wait();
  const Tensor tensor = full(1);
  group.all_reduce(tensor, premul_sum(0.5))->wait(20s);
  group.reduce(tensor, 0)->wait(20s);
  group.broadcast(tensor, 0)->wait(20s);
  group.all_gather_into_tensor(empty({size, 4}), tensor)->wait(20s);
  group.reduce_scatter_tensor(tensor, full(1, {size, 4}))->wait(20s);
  group.all_to_all_single(empty({size}), full(1, {size}))->wait(20s);
  (rank == 0 ? group.send(tensor, 1) : group.recv(tensor, 0))->wait(20s);
  group.barrier()->wait();
}

TEST_F(Nccl, EachErrorOfEachFunctionIsOneErrorOfAll) {
  const std::pair<const char*, int> functions[] = {{"ncclGetUniqueId", -1},
                                                   {"ncclCommInitRankConfig", 1},
                                                   {"ncclCommGetAsyncError", 1},
                                                   {"ncclAllReduce", 1},
                                                   {"ncclReduce", 1},
                                                   {"ncclBroadcast", 0},
                                                   {"ncclAllGather", 1},
                                                   {"ncclReduceScatter", 0},
                                                   {"ncclSend", 0},
                                                   {"ncclRecv", 1},
                                                   {"ncclRedOpCreatePreMulSum", 1},
                                                   {"ncclRedOpDestroy", 0},
                                                   {"ncclGroupStart", -1},
                                                   {"ncclGroupEnd", -1}};
  for (const auto& [function, rank] : functions) {
    for (const NcclResult result : kErrors) {
      fake_nccl::reset();
      fake_nccl::fail(function, result, rank);
      const auto errors = errors_of_ranks(2, fake_nccl_backends(), unchecked(), run_everything);
      const std::string text = concat("nccl: ", function, ": ", fake_nccl::api().get_error_string(result));
      EXPECT_EQ(errors[0], errors[1]) << text;
      EXPECT_THAT(errors[0], AllOf(HasSubstr(text), HasSubstr("the fake's last words")));
      EXPECT_EQ(fake_nccl::misuses(), std::vector<std::string>()) << text;
      EXPECT_EQ(fake_nccl::counts().alive(), 0) << text;
    }
  }
}

TEST_F(Nccl, ErrorsOfTheEndAreNobodysElse) {
  for (const char* function : {"ncclCommFinalize", "ncclCommDestroy", "ncclCommAbort"}) {
    fake_nccl::reset();
    fake_nccl::fail(function, NcclResult::kInternalError);
    on_ranks(2, fake_nccl_backends(), run_everything);
    EXPECT_EQ(fake_nccl::counts().alive(), 0) << function;
  }
}

TEST_F(Nccl, ARankThatNeverComesIsTooLate) {
  for (const bool is_made : {false, true}) {
    fake_nccl::reset();
    std::latch ended(1);
    const auto errors = errors_of_ranks(2, fake_nccl_backends(), unchecked(), [&](ProcessGroup& group) {
      if (is_made) group.barrier()->wait();
      if (group.rank() == 1) {
        ended.wait();
        return group.barrier()->wait();
      }
      const WorkPtr work = group.all_reduce(full(1), kSum, 200ms);
      try {
        work->wait(20s);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
        ended.count_down();
        throw;
      }
    });
    EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 0, all_reduce number"), HasSubstr("timed out waiting for other ranks"),
                                 HasSubstr("not there: rank 1")));
    EXPECT_EQ(errors[0], errors[1]);
  }
}

TEST_F(Nccl, AnErrorThatTheDeviceMeetsLaterEndsAllRanks) {
  const auto errors = errors_of_ranks(2, fake_nccl_backends(), unchecked(), [&](ProcessGroup& group) {
    group.barrier()->wait();
    const WorkPtr work = group.rank() == 0 ? group.all_reduce(full(1)) : nullptr;
    if (group.rank() == 0) {
      work->wait();  // it is enqueued
      fake_nccl::set_async_error(NcclResult::kRemoteError, 0);
      return work->wait(20s);
    }
    while (!group.failure()) std::this_thread::yield();
    group.barrier()->wait();
  });
  EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 0, all_reduce number 2"), HasSubstr("remote process exited")));
  EXPECT_EQ(errors[0], errors[1]);
  EXPECT_EQ(fake_nccl::counts().aborted, 2);
}

TEST_F(Nccl, AnAbortEndsWhatWaits) {
  std::latch queued(1);
  const auto errors = errors_of_ranks(2, fake_nccl_backends(), unchecked(), [&](ProcessGroup& group) {
    group.barrier()->wait();
    if (group.rank() == 1) {
      queued.wait();
      group.abort("the user has gone");
      return group.barrier()->wait();
    }
    const WorkPtr work = group.all_reduce(full(1)), next = group.broadcast(full(1), 1);
    work->wait();
    queued.count_down();
    EXPECT_THAT(message_of([&] { next->wait(20s); }), HasSubstr("the user has gone"));
    work->wait(20s);
  });
  for (const std::string& error : errors) EXPECT_THAT(error, HasSubstr("aborted by rank 1: the user has gone"));
}

TEST_F(Nccl, AGroupThatGoesEndsItsOperations) {
  WorkPtr work;
  errors_of_ranks(2, fake_nccl_backends(), unchecked(), [&](ProcessGroup& group) {
    group.barrier()->wait();
    if (group.rank() == 1) fail(ErrorCode::kCancelled, "leaves");
    work = group.all_reduce(full(1));
    work->wait();
    fail(ErrorCode::kCancelled, "leaves");
  });
  EXPECT_THAT(message_of([&] { work->wait(20s); }), HasSubstr("all_reduce number 2"));
}

TEST_F(Nccl, RanksThatDifferAreToldSo) {
  const auto errors = errors_of_ranks(2, fake_nccl_backends(), {.timeout = 20s}, [](ProcessGroup& group) {
    group.all_reduce(full(1, {2 + group.rank()}))->wait(20s);
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, AllOf(HasSubstr("Detected mismatch"), HasSubstr("float32[2]"), HasSubstr("float32[3]")));
  }
}

TEST_F(Nccl, RanksProveThatTheyKnowTheSecret) {
  GroupOptions options{.timeout = 20s};
  options.secret = "of the job";
  on_ranks(
      3, fake_nccl_backends(), [](ProcessGroup& group) { group.barrier()->wait(); }, options);
}

}  // namespace
}  // namespace tensord::distributed::nccl_test
