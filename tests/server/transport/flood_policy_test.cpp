// Frames parsed from bytes, and the policy's decisions.

#include "server/connections/flood_policy.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <random>
#include <string>

#include "server/connections/address_waits.h"

namespace tensord::server::flood_policy_test {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload = "") {
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(payload.size() >> shift & 255);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift & 255);
  return out + payload;
}

std::vector<FrameHead> read(FrameReader& reader, const std::string& bytes, const std::vector<size_t>& cuts = {}) {
  std::vector<FrameHead> out;
  size_t begin = 0;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const auto piece = [&](size_t end) {
    reader.read(data + begin, end - begin, [&](const FrameHead& head) { out.push_back(head); });
    begin = end;
  };
  for (const size_t cut : cuts) piece(cut);
  piece(bytes.size());
  return out;
}

bool same(const FrameHead& a, const FrameHead& b) {
  return a.length == b.length && a.type == b.type && a.flags == b.flags && a.stream == b.stream &&
         a.error_code == b.error_code;
}

TEST(FrameReader, FindsFramesAfterThePreface) {
  FrameReader reader(/*is_from_client=*/true);
  const auto frames = read(reader, kPreface + frame(FrameHead::kSettings, 0, 0, std::string(6, 'x')) +
                                       frame(FrameHead::kData, 1, 0x80000007, std::string(70'000, 'y')) +
                                       frame(FrameHead::kResetStream, 0, 7, std::string("\0\0\1\2", 4)));
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_TRUE(same(frames[0], {.length = 6, .type = FrameHead::kSettings}));
  EXPECT_TRUE(same(frames[1], {.length = 70'000, .type = FrameHead::kData, .flags = 1, .stream = 7}));
  EXPECT_TRUE(same(frames[2], {.length = 4, .type = FrameHead::kResetStream, .stream = 7, .error_code = 258}));
}

TEST(FrameReader, BytesOfOthersHaveNoFrames) {
  for (const std::string& begin : {std::string("GET / HTTP/1.1\r\n\r\n"), kPreface.substr(0, 23) + "x"}) {
    FrameReader reader(/*is_from_client=*/true);
    EXPECT_TRUE(read(reader, begin + frame(FrameHead::kPing, 0, 0, std::string(8, 0))).empty());
  }
}

TEST(FrameReader, WhereBytesAreCutChangesNothing) {
  std::mt19937 random(1);
  std::string bytes = kPreface;
  for (int i = 0; i < 300; ++i) {
    const auto type = static_cast<uint8_t>(random() % 11);
    const size_t size = type == FrameHead::kResetStream ? random() % 8 : random() % 3 == 0 ? 0 : random() % 500;
    std::string payload(size, 0);
    for (char& c : payload) c = static_cast<char>(random());
    bytes += frame(type, static_cast<uint8_t>(random()), static_cast<uint32_t>(random()), payload);
  }
  FrameReader whole(/*is_from_client=*/true);
  const auto expected = read(whole, bytes);
  ASSERT_EQ(expected.size(), 300u);
  for (int round = 0; round < 200; ++round) {
    std::vector<size_t> cuts(random() % 400);
    if (round == 0) cuts.resize(bytes.size());
    for (size_t i = 0; i < cuts.size(); ++i) cuts[i] = round == 0 ? i : random() % bytes.size();
    std::sort(cuts.begin(), cuts.end());
    FrameReader reader(/*is_from_client=*/true);
    const auto frames = read(reader, bytes, cuts);
    ASSERT_EQ(frames.size(), expected.size());
    for (size_t i = 0; i < frames.size(); ++i) EXPECT_TRUE(same(frames[i], expected[i])) << i;
  }
}

class FloodPolicyTest : public ::testing::Test {
 protected:
  CutReason open(uint32_t stream) {
    return policy_.received({.type = FrameHead::kHeaders, .flags = 4, .stream = stream});
  }
  CutReason reset(uint32_t stream) {
    return policy_.received({.length = 4, .type = FrameHead::kResetStream, .stream = stream});
  }
  void answer(uint32_t stream) {
    policy_.sent({.length = 10, .type = FrameHead::kData, .stream = stream});
    policy_.sent({.length = 10, .type = FrameHead::kHeaders, .flags = 5, .stream = stream});
  }
  void acknowledge() { policy_.received({.type = FrameHead::kSettings, .flags = FrameHead::kAck}); }
  // How often `fn` succeeds until the connection is cut; `max` and kNone if it is not cut.
  template <class Fn>
  std::pair<int, CutReason> repeat(int max, Fn fn) {
    for (int i = 0; i < max; ++i) {
      if (const CutReason reason = fn(next_ += 2); reason != CutReason::kNone) return {i, reason};
    }
    return {max, CutReason::kNone};
  }

  FloodLimits limits_;
  FloodTotals totals_;
  ManualClock clock_;
  FloodPolicy policy_{limits_, totals_, clock_};
  uint32_t next_ = 1;
};
using Result = std::pair<int, CutReason>;

TEST_F(FloodPolicyTest, StreamsBeforeTheSettingsAreAcknowledged) {
  EXPECT_EQ(repeat(1000,
                   [&](uint32_t stream) {
                     const CutReason reason = open(stream);
                     answer(stream);
                     return reason;
                   }),
            Result(100, CutReason::kUnacknowledgedStreams));
}

TEST_F(FloodPolicyTest, OpenStreams) {
  acknowledge();
  EXPECT_EQ(repeat(5000, [&](uint32_t stream) { return open(stream); }), Result(1000, CutReason::kOpenStreams));
  EXPECT_EQ(policy_.open_streams(), 1000u);
}

TEST_F(FloodPolicyTest, StreamsThatEndMakeRoom) {
  acknowledge();
  EXPECT_EQ(repeat(100'000,
                   [&](uint32_t stream) {
                     const CutReason reason = open(stream);
                     if (stream > 1000) answer(stream - 1000);
                     return reason;
                   }),
            Result(100'000, CutReason::kNone));
  EXPECT_EQ(policy_.open_streams(), 500u);
}

TEST_F(FloodPolicyTest, AStreamEndsOnce) {
  acknowledge();
  open(1), open(3), open(5);
  answer(3), answer(3), reset(3);
  EXPECT_EQ(policy_.open_streams(), 2u);
  reset(1);
  policy_.sent({.length = 4, .type = FrameHead::kResetStream, .stream = 5});
  EXPECT_EQ(policy_.open_streams(), 0u);
}

TEST_F(FloodPolicyTest, Resets) {
  acknowledge();
  const auto open_and_reset = [&](uint32_t stream) { return open(stream), reset(stream); };
  EXPECT_EQ(repeat(10'000, open_and_reset), Result(3000, CutReason::kResets));
  clock_.advance_ns(kSecondNs);
  EXPECT_EQ(repeat(10'000, open_and_reset), Result(499, CutReason::kResets));  // one more was counted
}

TEST_F(FloodPolicyTest, ResetsOfManyConnections) {
  std::vector<FloodPolicy> others(4, FloodPolicy(limits_, totals_, clock_));
  for (FloodPolicy& other : others) {
    for (int i = 0; i < 1400; ++i) other.received({.length = 4, .type = FrameHead::kResetStream, .stream = 1});
  }
  EXPECT_EQ(repeat(1000, [&](uint32_t stream) { return reset(stream); }), Result(500, CutReason::kResets));
}

TEST_F(FloodPolicyTest, ResetsBesideAnswersCostNothing) {
  acknowledge();
  EXPECT_EQ(repeat(100'000,
                   [&](uint32_t stream) {
                     open(stream);
                     answer(stream);
                     open(stream + 1);
                     return reset(stream + 1);
                   }),
            Result(100'000, CutReason::kNone));
}

TEST_F(FloodPolicyTest, ResetsThatTheServerIsMadeToSend) {
  acknowledge();
  const auto provoke = [&](uint32_t stream) {
    open(stream);
    return policy_.sent({.length = 4, .type = FrameHead::kResetStream, .stream = stream, .error_code = 1});
  };
  EXPECT_EQ(repeat(10'000, provoke), Result(3000, CutReason::kResets));
}

TEST_F(FloodPolicyTest, ControlFrames) {
  for (const FrameHead head :
       {FrameHead{.type = FrameHead::kSettings}, FrameHead{.length = 8, .type = FrameHead::kPing},
        FrameHead{.length = 5, .type = FrameHead::kPriority}, FrameHead{.type = FrameHead::kData},
        FrameHead{.type = 77}}) {
    FloodPolicy policy(limits_, totals_, clock_);
    EXPECT_EQ(repeat(10'000, [&](uint32_t) { return policy.received(head); }), Result(500, CutReason::kControlFrames));
    clock_.advance_ns(kSecondNs / 2);
    EXPECT_EQ(repeat(10'000, [&](uint32_t) { return policy.received(head); }), Result(249, CutReason::kControlFrames));
  }
  const FrameHead update{.length = 4, .type = FrameHead::kWindowUpdate};
  const auto [updates, reason] = repeat(100'000, [&](uint32_t) { return policy_.received(update); });
  EXPECT_NEAR(updates, 10'000, 1);
  EXPECT_EQ(reason, CutReason::kControlFrames);
}

TEST_F(FloodPolicyTest, ControlFramesForDataCostNothing) {
  EXPECT_EQ(repeat(100'000,
                   [&](uint32_t) {
                     policy_.sent({.length = 16'384, .type = FrameHead::kData, .stream = 1});
                     policy_.received({.length = 4, .type = FrameHead::kWindowUpdate});
                     policy_.received({.length = 4, .type = FrameHead::kWindowUpdate, .stream = 1});
                     return policy_.received({.length = 8, .type = FrameHead::kPing});
                   }),
            Result(100'000, CutReason::kNone));
}

TEST_F(FloodPolicyTest, HeaderBlocks) {
  policy_.received({.length = 100, .type = FrameHead::kHeaders, .stream = 1});
  const auto go_on = [&](uint32_t length) {
    return [&, length](uint32_t) {
      return policy_.received({.length = length, .type = FrameHead::kContinuation, .stream = 1});
    };
  };
  EXPECT_EQ(repeat(1000, go_on(16'320)), Result(15, CutReason::kHeaderBlock));
  // The next block is counted anew; empty frames count too.
  policy_.received({.length = 0, .type = FrameHead::kHeaders, .stream = 3});
  EXPECT_EQ(repeat(10'000, go_on(0)), Result(4095, CutReason::kHeaderBlock));
  EXPECT_EQ(policy_.received({.length = 1 << 20, .type = FrameHead::kHeaders, .stream = 5}), CutReason::kHeaderBlock);
}

TEST_F(FloodPolicyTest, LargeHeaderBlocks) {
  const auto large = [&](uint32_t stream) {
    policy_.received({.length = 16'000, .type = FrameHead::kHeaders, .stream = stream});
    policy_.received({.length = 16'000, .type = FrameHead::kContinuation, .stream = stream});
    return policy_.received({.length = 16'000, .type = FrameHead::kContinuation, .flags = 4, .stream = stream});
  };
  EXPECT_EQ(repeat(100, large), Result(10, CutReason::kControlFrames));
}

PeerAddress address(uint32_t number) {
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(number);
  return PeerAddress(storage);
}

TEST(AddressWaits, TwiceAsLongEachTime) {
  AddressWaits waits(10 * kSecondNs);
  const PeerAddress some = address(0x7f000001), other = address(0x7f000002);
  EXPECT_EQ(some.text(), "127.0.0.1");
  int64_t now_ns = 5 * kSecondNs;
  for (const int64_t seconds : {1, 2, 4, 8, 10, 10}) {
    waits.record_cut(some, now_ns);
    waits.record_cut(some, now_ns + 1);  // another one of its connections
    EXPECT_TRUE(waits.waits(some, now_ns + seconds * kSecondNs - 1));
    EXPECT_FALSE(waits.waits(some, now_ns + seconds * kSecondNs));
    EXPECT_FALSE(waits.waits(other, now_ns));
    now_ns += seconds * kSecondNs;
  }
  now_ns += 60 * kSecondNs;
  waits.record_cut(some, now_ns);
  EXPECT_FALSE(waits.waits(some, now_ns + kSecondNs));
  waits.record_cut(PeerAddress(), now_ns);  // Unix sockets do not wait
  EXPECT_FALSE(waits.waits(PeerAddress(), now_ns));
}

TEST(AddressWaits, AddressesAreBounded) {
  AddressWaits waits(60 * kSecondNs);
  for (uint32_t i = 0; i < 10'000; ++i) waits.record_cut(address(i), i);
  EXPECT_EQ(waits.size(), AddressWaits::kMaxAddresses);
  EXPECT_TRUE(waits.waits(address(9999), 10'000));
  EXPECT_FALSE(waits.waits(address(0), 10'000));
}

TEST(PeerAddress, OfIpv6TheNetwork) {
  sockaddr_storage one{}, two{};
  for (sockaddr_storage* storage : {&one, &two}) storage->ss_family = AF_INET6;
  reinterpret_cast<sockaddr_in6&>(one).sin6_addr.s6_addr[0] = 0x20;
  reinterpret_cast<sockaddr_in6&>(two).sin6_addr.s6_addr[0] = 0x20;
  reinterpret_cast<sockaddr_in6&>(two).sin6_addr.s6_addr[15] = 1;
  EXPECT_EQ(PeerAddress(one), PeerAddress(two));
  reinterpret_cast<sockaddr_in6&>(two).sin6_addr.s6_addr[7] = 1;
  EXPECT_NE(PeerAddress(one), PeerAddress(two));
}

}  // namespace
}  // namespace tensord::server::flood_policy_test
