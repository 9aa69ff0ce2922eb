// Compressed messages are decompressed within limits; tests/e2e/network_test.py sends them to the daemon.
#include "server/transport/grpc/unpack.h"

#include <gmock/gmock.h>
#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <grpcpp/grpcpp.h>
#include <zlib.h>

#include <random>

#include "core/base/error.h"
#include "server/transport/grpc/byte_buffer.h"
#include "tests/server/error_of.h"

namespace tensord::server::unpack_test {
namespace {

using ::testing::HasSubstr;

std::string compressed(const std::string& text, bool is_gzip = true) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 | (is_gzip ? 16 : 0), 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// A compressed message as gRPC delivers it, in slices of `slice_bytes`. Only gRPC itself can create such a ByteBuffer;
// the class is a single pointer, as its header asserts.
grpc::ByteBuffer received(const std::string& bytes, grpc_compression_algorithm algorithm, size_t slice_bytes) {
  std::vector<grpc_slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) {
    slices.push_back(grpc_slice_from_copied_buffer(bytes.data() + at, std::min(slice_bytes, bytes.size() - at)));
  }
  grpc_byte_buffer* made = grpc_raw_compressed_byte_buffer_create(slices.data(), slices.size(), algorithm);
  for (const grpc_slice& slice : slices) grpc_slice_unref(slice);
  grpc::ByteBuffer buffer;
  constexpr size_t kBytes = sizeof(grpc_byte_buffer*);
  static_assert(sizeof(buffer) == kBytes);
  std::memcpy(static_cast<void*>(&buffer), static_cast<const void*>(&made), kBytes);
  return buffer;
}

std::string text_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

// The decompressed message, or the error.
std::string unpacked(grpc::ByteBuffer message, RequestLimits& limits) {
  RequestLimits::Admission admission = limits.hold(message.Length());
  try {
    unpack(message, limits, admission);
  } catch (const Error& error) {
    return error.what();
  }
  return text_of(message);
}

std::string random_text(size_t size, int letters) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  for (char& letter : text) letter = static_cast<char>(random() % static_cast<unsigned>(letters));
  return text;
}

TEST(Unpack, GivesBackWhatWasCompressed) {
  RequestLimits limits(0, 0, 64 << 20);
  for (const size_t size : {0u, 1u, 100u, 1'100'001u}) {
    for (const int letters : {1, 200}) {
      const std::string text = random_text(size, letters);
      for (const bool is_gzip : {false, true}) {
        const auto algorithm = is_gzip ? GRPC_COMPRESS_GZIP : GRPC_COMPRESS_DEFLATE;
        for (const size_t slice : {size_t{1000}, size_t{1} << 30}) {
          EXPECT_TRUE(unpacked(received(compressed(text, is_gzip), algorithm, slice), limits) == text)
              << size << " of " << letters;
        }
      }
    }
  }
  EXPECT_EQ(unpacked(received("plain", GRPC_COMPRESS_NONE, 2), limits), "plain");
  EXPECT_EQ(limits.bytes(), 0u);
}

// Like a call that ended before its message arrived.
TEST(Unpack, LeavesWhatIsNoMessage) {
  RequestLimits limits(0, 0, 1 << 20);
  RequestLimits::Admission admission = limits.hold(0);
  grpc::ByteBuffer none;
  unpack(none, limits, admission);
  EXPECT_FALSE(none.Valid());
  EXPECT_EQ(error_of([&] { to_wire_message(none); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(limits.bytes(), 0u);
}

TEST(Unpack, StopsAtTheLimits) {
  const std::string bomb = compressed(std::string(10 << 20, '\0'));
  ASSERT_LT(bomb.size(), 60'000u);
  const auto message = [&] { return received(bomb, GRPC_COMPRESS_GZIP, 1 << 20); };
  RequestLimits exact(0, 0, 10 << 20), smaller(0, 0, (10 << 20) - 1), quota(0, 4 << 20, 64 << 20);
  EXPECT_EQ(unpacked(message(), exact).size(), size_t{10} << 20);
  EXPECT_THAT(unpacked(message(), smaller), HasSubstr("unpacks to more than the 10485759 bytes"));
  EXPECT_THAT(unpacked(message(), quota), HasSubstr("of the 4194304 bytes"));
  EXPECT_EQ(quota.bytes(), 0u);
  // No memory is used before it was requested.
  RequestLimits::Admission admission = quota.hold(0);
  grpc::ByteBuffer kept = message();
  EXPECT_THROW(unpack(kept, quota, admission), Error);
  EXPECT_LE(quota.bytes(), uint64_t{4} << 20);
  EXPECT_EQ(kept.Length(), bomb.size());
}

// A small message gets a small buffer, whatever the largest may be.
TEST(Unpack, TakesNotMuchMoreThanItNeeds) {
  for (const uint64_t max_message_bytes : {uint64_t{0}, uint64_t{64} << 20}) {
    RequestLimits limits(0, 0, max_message_bytes);
    RequestLimits::Admission admission = limits.hold(0);
    grpc::ByteBuffer message = received(compressed(random_text(100, 200)), GRPC_COMPRESS_GZIP, 1 << 20);
    unpack(message, limits, admission);
    EXPECT_EQ(message.Length(), 100u);
    EXPECT_LE(limits.bytes(), 1024u);
  }
  // A large one wastes at most a buffer of 8 MiB: buffers double from 1 MiB up to that size.
  for (const size_t size : {size_t{7} << 20, (size_t{15} << 20) + 1}) {
    RequestLimits limits(0, 0, 0);
    RequestLimits::Admission admission = limits.hold(0);
    grpc::ByteBuffer message = received(compressed(random_text(size, 200)), GRPC_COMPRESS_GZIP, 1 << 20);
    unpack(message, limits, admission);
    EXPECT_EQ(message.Length(), size);
    EXPECT_LE(limits.bytes(), std::min<uint64_t>(size, 15 << 20) + (size > 15 << 20 ? 8 << 20 : 0));
  }
}

TEST(Unpack, StopsWhereAMessageIsMuchLargerThanItCame) {
  RequestLimits limits(0, 0, 0);
  const std::string max = compressed(std::string(64 << 20, '\0')), bomb = compressed(std::string((64 << 20) + 1, '\0'));
  ASSERT_LT(bomb.size(), 600'000u);
  EXPECT_EQ(unpacked(received(max, GRPC_COMPRESS_GZIP, 1 << 20), limits).size(), size_t{64} << 20);
  EXPECT_THAT(unpacked(received(bomb, GRPC_COMPRESS_GZIP, 1 << 20), limits), HasSubstr("more than 100 times its size"));
  // Nor is more memory used, except the byte that would show that there is more.
  RequestLimits::Admission admission = limits.hold(0);
  grpc::ByteBuffer message = received(max, GRPC_COMPRESS_GZIP, 1 << 20);
  unpack(message, limits, admission);
  EXPECT_LE(limits.bytes(), (uint64_t{64} << 20) + 1);
}

TEST(Unpack, DamagedMessagesAreRefused) {
  RequestLimits limits(0, 0, 1 << 20);
  const std::string good = compressed(random_text(20'000, 16));
  const auto result = [&](const std::string& bytes) {
    return unpacked(received(bytes, GRPC_COMPRESS_GZIP, 777), limits);
  };
  EXPECT_THAT(result(""), HasSubstr("its end is missing"));
  EXPECT_THAT(result("this was never compressed"), HasSubstr("cannot be unpacked"));
  EXPECT_THAT(result(good + "x"), HasSubstr("after the end"));
  for (size_t size = 0; size < good.size(); size += 101) {
    EXPECT_THAT(result(good.substr(0, size)), HasSubstr("cannot be unpacked")) << size;
  }
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = good;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
    EXPECT_LE(result(damaged).size(), size_t{1} << 20);
  }
  EXPECT_EQ(limits.bytes(), 0u);
}

}  // namespace
}  // namespace tensord::server::unpack_test
