// Limits on the memory of requests beyond their own bytes, and the return of free memory.

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "protos/inference.pb.h"
#include "server/training/jobs/job_store.h"
#include "server/transport/calls/health_watch.h"
#include "server/transport/grpc/heap_trimmer.h"
#include "server/transport/infer/decode.h"
#include "tests/server/error_of.h"
#include "tests/server/fake_models.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::memory_bounds_test {
namespace {

using ::testing::HasSubstr;
constexpr uint64_t kMb = 1 << 20;

template <class Call>
std::string message_of(Call call) {
  return error_of(call).what();
}

WireMessage wire_of(const std::string& bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  WireMessage wire;
  wire.add_piece({reinterpret_cast<const uint8_t*>(owner->data()), owner->size()});
  wire.owner = owner;
  return wire;
}

TEST(MessageBounds, PartsOfContentsAreCountedOverAllInputs) {
  // Field 5 (inputs) with empty fields 5 (contents).
  std::string contents, message;
  for (int i = 0; i < 4000; ++i) contents += std::string("\x2a\0", 2);
  const auto input = [&] {
    return std::string("\x2a") + static_cast<char>(0x80 | (contents.size() & 127)) +
           static_cast<char>(contents.size() >> 7) + contents;
  };
  message = input() + input();
  EXPECT_EQ(parse_infer_message(wire_of(message)).inputs.size(), 2u);
  message += input();
  EXPECT_THAT(message_of([&] { parse_infer_message(wire_of(message)); }), HasSubstr("contents in more than"));
}

TEST(MessageBounds, ParametersAreCountedOverAllInputs) {
  inference::ModelInferRequest request;
  for (int i = 0; i < 33; ++i) {
    auto* input = request.add_inputs();
    for (int j = 0; j < 1000; ++j) (*input->mutable_parameters())[std::to_string(j)].set_int64_param(j);
  }
  EXPECT_THAT(message_of([&] { parse_infer_message(wire_of(request.SerializeAsString())); }),
              HasSubstr("32768 parameters in all"));
}

// Each list at its maximum length, and one longer.
TEST(MessageBounds, ListsUpToTheirLimits) {
  const auto field = [](char tag, const std::string& content) {
    std::string size;
    size_t left = content.size();
    for (; left > 127; left >>= 7) size += static_cast<char>(0x80 | (left & 127));
    return std::string(1, tag) + size + static_cast<char>(left) + content;
  };
  const auto times = [](size_t count, const std::string& text) {
    std::string all;
    for (size_t i = 0; i < count; ++i) all += text;
    return all;
  };
  const auto outcome = [](const std::string& message) {
    return message_of([&] { parse_infer_message(wire_of(message)); });
  };
  const std::string empty_contents = field(0x2a, ""), full_input = field(0x2a, times(4096, empty_contents));
  const auto keys = [&](size_t count) {
    std::string all;
    for (size_t i = 0; i < count; ++i) all += field(0x22, field(0x0a, std::to_string(i)));
    return all;
  };
  const std::string full_map = field(0x2a, keys(1024));
  const struct {
    std::string max, more;
    const char* says;
  } rows[] = {
      {times(4096, field(0x2a, "")), field(0x2a, ""), "more than 4096 tensors"},
      {times(4096, field(0x32, "")), field(0x32, ""), "more than 4096 tensors"},
      {times(4096, field(0x3a, "")), field(0x3a, ""), "more than 4096 tensors"},
      {full_input, field(0x2a, times(4097, empty_contents)), "contents in more than 4096 parts"},
      {full_input + full_input, field(0x2a, empty_contents), "contents in more than 8192 parts"},
      {keys(1024), field(0x22, field(0x0a, "x")), "more than 1024 parameters"},
      {times(32, full_map), field(0x22, ""), "32768 parameters in all"},
      {field(0x2a, times(64, std::string("\x18\x01"))), field(0x2a, times(65, std::string("\x18\x01"))),
       "more than 64 dimensions"},
      {field(0x2a, field(0x1a, times(64, "\x01"))), field(0x2a, field(0x1a, times(65, "\x01"))),
       "more than 64 dimensions"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.says);
    EXPECT_NO_THROW(parse_infer_message(wire_of(row.max)));
    EXPECT_THAT(outcome(row.max + row.more), HasSubstr(row.says));
  }
}

TEST(MessageBounds, EmptyTextsCountAsWhatTheyBecome) {
  Signature signature = fixtures::signature_of({"x"}, {"OUTPUT__0"});
  signature.inputs[0].takes_bytes = true;
  inference::ModelInferRequest request;
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("BYTES");
  input->add_shape(100'000);
  request.add_raw_input_contents(std::string(400'000, '\0'));
  const auto decode = [&](uint64_t quota) {
    RequestLimits limits(0, quota);
    RequestLimits::Admission admission = limits.hold(500'000);
    const WireMessage wire = wire_of(request.SerializeAsString());
    const InferMessage message = parse_infer_message(wire);
    return decode_inputs(message, wire, signature, {.admission = &admission}).inputs[0].strings.size();
  };
  EXPECT_EQ(decode(32 * kMb), 100'000u);
  EXPECT_THAT(message_of([&] { decode(8 * kMb); }), HasSubstr("takes no more"));
  input->set_shape(0, int64_t{1} << 50);
  EXPECT_THAT(message_of([&] { decode(0); }), HasSubstr("string elements for"));
}

TEST(TrimPolicy, WhatWasUsedWithinTenSecondsIsKept) {
  TrimPolicy free;
  const auto ten_looks = [&free](uint64_t low_mb, uint64_t high_mb) {
    uint64_t kept = 0;
    for (int i = 0; i < 10; ++i) kept = free.keep((i == 4 ? low_mb : high_mb) * kMb);
    return kept / kMb;
  };
  EXPECT_EQ(ten_looks(0, 1000), 1000u);
  EXPECT_EQ(ten_looks(700, 1000), 1000u - 700 + 64);
  EXPECT_EQ(ten_looks(1000, 1000), 64u);
  EXPECT_EQ(ten_looks(50, 60), 60u);
}

TEST(TrimPolicy, LessIsKeptWhereRequestsMayHaveLess) {
  TrimPolicy free(128 * kMb);
  uint64_t kept = 0;
  for (int i = 0; i < 10; ++i) kept = free.keep(100 * kMb);
  EXPECT_EQ(kept, 32 * kMb);
}

TEST(TrimPolicy, TheHeapIsTrimmedAfterABurst) {
  TrimPolicy free;
  EXPECT_FALSE(free.is_heap_to_trim(10 * kMb, 0));
  EXPECT_FALSE(free.is_heap_to_trim(100 * kMb, 60 * kMb));
  EXPECT_TRUE(free.is_heap_to_trim(60 * kMb, 20 * kMb));
  EXPECT_FALSE(free.is_heap_to_trim(20 * kMb, 0)) << "once";
  EXPECT_TRUE(TrimPolicy().is_heap_to_trim(32 * kMb, 0));
  EXPECT_FALSE(TrimPolicy().is_heap_to_trim(32 * kMb - 1, 0));
  EXPECT_TRUE(TrimPolicy().is_heap_to_trim(40 * kMb, 10 * kMb));
  EXPECT_FALSE(TrimPolicy().is_heap_to_trim(40 * kMb, 10 * kMb + 1));
}

TEST(RequestLimits, KnowTheirPeak) {
  RequestLimits limits(0, 100 * kMb);
  { const auto much = limits.hold(50 * kMb); }
  const auto some = limits.hold(10 * kMb);
  EXPECT_EQ(limits.take_peak(), 50 * kMb);
  EXPECT_EQ(limits.take_peak(), 10 * kMb);
}

TEST(Uploads, TheOldestMakeRoom) {
  const fixtures::TemporaryFolder folder("uploads");
  JobStore store(folder.path().string());
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    store.make_room_for_upload("", 3, 1000, 300);
    ids.push_back(store.make_upload(""));
    const auto file = store.upload_file("", ids.back());
    std::ofstream(file) << std::string(300, 'x');
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(9 - i));
  }
  const auto is_there = [&](int i) {
    return std::filesystem::exists(store.upload_file("", ids[static_cast<size_t>(i)]));
  };
  EXPECT_FALSE(is_there(0));
  EXPECT_TRUE(is_there(1) && is_there(2) && is_there(3));
  store.make_room_for_upload("another", 1, 10, 10);  // has none of these
  EXPECT_TRUE(is_there(1) && is_there(2) && is_there(3));
  store.make_room_for_upload("", 3, 1000, 700);
  EXPECT_FALSE(is_there(1) || is_there(2));
  EXPECT_TRUE(is_there(3));
}

// Records the statuses.
struct Watcher final : HealthWatcher {
  void set_status(HealthWatch::Status status) override { statuses.push_back(status); }
  void close() override { is_closed = true; }
  bool is_closed = false;
  std::vector<HealthWatch::Status> statuses;
};

TEST(HealthWatch, TellsChangesAndLooksOnceForAll) {
  using Response = grpc::health::v1::HealthCheckResponse;
  std::atomic<bool> serves{true};
  std::atomic<int> looks{0};
  std::vector<Watcher> watchers(HealthWatch::kMaxWatchers);
  Watcher more;
  HealthWatch watch([&](const std::string&) {
    ++looks;
    return serves ? Response::SERVING : Response::NOT_SERVING;
  });
  for (Watcher& watcher : watchers) watch.add("m", watcher);
  EXPECT_THAT(message_of([&] { watch.add("m", more); }), HasSubstr("takes no more"));
  EXPECT_THAT(message_of([&] { watch.add(std::string(1025, 'm'), more); }), HasSubstr("has 1025 bytes, at most 1024"));
  serves = false;
  const int before = looks;
  while (looks < before + 2) std::this_thread::yield();
  for (Watcher& watcher : watchers) watch.remove(watcher);
  EXPECT_LT(looks, 1000);
  for (const Watcher& watcher : watchers) {
    EXPECT_THAT(watcher.statuses, ::testing::ElementsAre(Response::SERVING, Response::NOT_SERVING));
  }
  watch.remove(more);
}

}  // namespace
}  // namespace tensord::server::memory_bounds_test
