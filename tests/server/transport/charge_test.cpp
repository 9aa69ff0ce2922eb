// Each kind of request and response at three sizes: all memory that the daemon holds for it is charged, and its
// computation is linear in its size. Bytes are counted at allocation, instructions by single-stepping a child process.
#include <gmock/gmock.h>
#include <malloc.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/tensor/memory/caching_allocator.h"
#include "protos/inference.pb.h"
#include "server/rest/infer_json.h"
#include "server/rest/json_data.h"
#include "server/transport/infer/parameters.h"
#include "tests/server/error_of.h"
#include "tests/server/transport/charge_kinds.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENSORD_COUNTS_HEAP 0
#else
#define TENSORD_COUNTS_HEAP 1
#endif

namespace tensord::server::charge_test {

std::atomic<int64_t> heap_bytes{0}, heap_peak{0};

void* count_new(size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  const auto size = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t now = heap_bytes.fetch_add(size, std::memory_order_relaxed) + size;
  if (now > heap_peak.load(std::memory_order_relaxed)) heap_peak.store(now, std::memory_order_relaxed);
  return memory;
}

void count_delete(void* memory) noexcept {
  if (memory == nullptr) return;
  heap_bytes.fetch_sub(static_cast<int64_t>(malloc_usable_size(memory)), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace tensord::server::charge_test

#if TENSORD_COUNTS_HEAP
void* operator new(size_t bytes) { return tensord::server::charge_test::count_new(bytes); }
void operator delete(void* memory) noexcept { tensord::server::charge_test::count_delete(memory); }
void operator delete(void* memory, size_t) noexcept { tensord::server::charge_test::count_delete(memory); }
#endif

namespace tensord::server::charge_test {
namespace {

using ::testing::HasSubstr;

class ChargeTest : public ::testing::TestWithParam<size_t> {
 protected:
  const Kind kind_ = all_kinds().at(GetParam());
};

// Incoming bytes are charged as they are received, and exist before.
TEST_P(ChargeTest, NothingIsHeldThatIsNotCharged) {
  if (!TENSORD_COUNTS_HEAP) GTEST_SKIP() << "the heap is the sanitizer's";
  constexpr int64_t kFreeBytes = 64 << 10;  // of a request, whatever its contents
  for (const size_t size : {1'000, 10'000, 100'000}) {
    const std::shared_ptr<void> made = kind_.make(size);
    Counter counter;
    const OwnerId owner = memory_owner("charge_test");
    const MemoryOwnerScope scope(owner);
    const int64_t before = heap_bytes;
    heap_peak = before;
    const std::shared_ptr<void> kept = kind_.run(made.get(), counter);
    const auto tensors = static_cast<int64_t>(cpu_allocator().live_bytes_of(owner));
    const auto charged = static_cast<int64_t>(counter.limits.take_peak());
    EXPECT_LE(heap_peak - before + tensors, charged + kFreeBytes) << kind_.name << ", " << size;
  }
}

// Instructions of `call` in a child process; -1: ptrace is unavailable.
int64_t instructions(const std::function<void()>& call) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(9);
    raise(SIGSTOP);
    call();
    _exit(0);
  }
  int status = 0;
  int64_t count = 0;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    ++count;
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? count : -1;
}

TEST_P(ChargeTest, WhatIsComputedGrowsWithTheSize) {
  if (!TENSORD_COUNTS_HEAP) GTEST_SKIP() << "the instructions are the sanitizer's";
  std::vector<int64_t> counts;
  for (const size_t size : {1, 10, 100}) {
    const std::shared_ptr<void> made = kind_.make(size);
    // A first run without counting, because resolving functions of shared libraries in the child takes a hundred times
    // as many instructions.
    const auto run = [&] {
      Counter counter;
      kind_.run(made.get(), counter);
    };
    run();
    counts.push_back(instructions(run));
    if (counts.back() < 0) GTEST_SKIP() << "no process can be watched here";
  }
  RecordProperty("instructions", ::testing::PrintToString(counts));
  // Ten times the size takes 9 to 12 times the instructions, the more the more often maps and lists have to grow, and
  // numbers get a second digit; quadratic growth would take a hundred times.
  const int64_t small = std::max<int64_t>(counts[1] - counts[0], 2'000);
  EXPECT_LE(counts[2] - counts[1], 15 * small) << kind_.name << ": " << ::testing::PrintToString(counts);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ChargeTest, ::testing::Range<size_t>(0, all_kinds().size()), [](const auto& kind) {
  std::string name = all_kinds().at(kind.param).name;
  std::string out;
  for (const char letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter))) out += letter;
  }
  return out;
});

TEST(Charge, StopsWhereThereIsNoRoomAndWhereNobodyWaits) {
  const std::string json = one_input("BYTES", 100'000, times(99'999, "\"\",") + "\"\"");
  const auto read = [&](uint64_t quota, bool is_gone) {
    RequestLimits limits(0, quota);
    RequestLimits::Admission admission = limits.charge(0);
    const CallCharge charge(admission, [is_gone] { return is_gone; });
    const WireMessage wire = wire_of(json);
    RestRequest request = parse_infer_json("m", "", json, wire, json.size(), 0, charge);
    InferTensor out;
    out.datatype = DataType::kBytes;
    request.message.inputs.at(0).fill(100'000, out);
  };
  EXPECT_THAT(error_of([&] { read(8 << 20, false); }).what(),
              HasSubstr("no room for 16000000 bytes more: clients have 1024 of the 8388608 bytes"));
  EXPECT_EQ(error_of([&] { read(64 << 20, true); }).code(), ErrorCode::kCancelled);
  read(64 << 20, false);

  AnswerText answer({}, [] { return true; });
  EXPECT_EQ(error_of([&] { write_json_data(tensor_of(DataType::kBool, 1'000'000), answer); }).code(),
            ErrorCode::kCancelled);
}

TEST(Charge, NamesAndIdsAreBounded) {
  const auto parse = [](const std::string& json) {
    const WireMessage wire = wire_of(json);
    return error_of([&] { parse_infer_json("m", "", json, wire, json.size(), 0, CallCharge()); });
  };
  EXPECT_THAT(parse(R"({"id":")" + std::string((64 << 10) + 1, 'x') + "\"}").what(), HasSubstr("id has 65537 bytes"));
  EXPECT_THAT(parse(R"({"inputs":[{"name":")" + std::string((16 << 10) + 1, 'x') + "\"}]}").what(),
              HasSubstr("the name of an input has 16385 bytes"));
  EXPECT_THAT(parse("{\"" + std::string(70'000, 'x') + "\":1}").what(),
              HasSubstr("a name of object member is too long"));
  inference::ModelInferRequest request;
  request.set_id(std::string((64 << 10) + 1, 'x'));
  const auto refusal = [&] {
    const std::string bytes = request.SerializeAsString();
    return std::string(error_of([&] { parse_infer_message(wire_of(bytes)); }).what());
  };
  EXPECT_THAT(refusal(), HasSubstr("id has 65537 bytes"));
  request.set_id("x");
  request.set_model_name(std::string((16 << 10) + 1, 'x'));
  EXPECT_THAT(refusal(), HasSubstr("the name of a model has 16385 bytes"));
}

// It is kept as long as its sequence, which outlives any request.
TEST(Charge, TheTextOfASequenceIsBounded) {
  const auto read = [](size_t size) {
    InferMessage message;
    message.parameters["sequence_id"] = std::string(size, 's');
    InferRequest request;
    read_parameters(message, request);
    return request.sequence.text;
  };
  EXPECT_EQ(read(128), std::string(128, 's'));
  EXPECT_STREQ(error_of([&] { read(129); }).what(), "the text of 'sequence_id' has 129 bytes, at most 128");
}

}  // namespace
}  // namespace tensord::server::charge_test
