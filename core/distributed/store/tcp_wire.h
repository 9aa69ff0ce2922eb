#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

// The protocol between a TcpStore and its server. A message is its size (4 bytes), a type byte and fields. Numbers are
// little-endian; strings are prefixed with their size. The server speaks first: kGreeting and a nonce. The client
// proves that it knows the token. After that each request has one reply.
namespace tensord::distributed::tcp {

inline constexpr std::string_view kGreeting = "tensord store 1\n";
inline constexpr size_t kNonceSize = 16;
// Limits of a key, of a value, and of the whole table.
inline constexpr size_t kMaxKey = 64 << 10, kMaxValue = 32 << 20, kMaxTable = 256 << 20;
inline constexpr uint32_t kMaxMessage = 80u << 20;  // two values, and keys
// Limits of a client: unread replies, beyond which its requests are not read; keys in one wait.
inline constexpr size_t kMaxUnread = 64 << 20, kMaxAwaited = 1 << 16;
// Limits before a client is admitted: bytes it may send, how long it may take, and the number of such clients.
inline constexpr uint32_t kMaxHello = 256;
inline constexpr std::chrono::seconds kHelloTime{10};
inline constexpr size_t kMaxStrangers = 256;

enum class Command : uint8_t {
  kHello,
  kSet,
  kGet,
  kWait,
  kCheck,
  kAdd,
  kCompareSet,
  kAppend,
  kRemove,
  kCount,
  kList,
  kPush,
  kPop,
  kQueueSize,
};

inline constexpr uint8_t kDone =
    0xff;  // of a successful reply; otherwise an ErrorCode, and the message as the only field

class Writer {
 public:
  explicit Writer(uint8_t kind) : bytes_(4, '\0') { bytes_.push_back(static_cast<char>(kind)); }
  explicit Writer(Command command) : Writer(static_cast<uint8_t>(command)) {}
  Writer& number(int64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  Writer& text(std::string_view value) {
    check(value.size() < kMaxMessage, "store: a key or value of ", value.size(), " bytes, at most ", kMaxMessage);
    const auto size = static_cast<uint32_t>(value.size());
    bytes_.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes_.append(value);
    return *this;
  }
  Writer& texts(std::span<const std::string> values) {
    number(static_cast<int64_t>(values.size()));
    for (const std::string& value : values) text(value);
    return *this;
  }
  // Returns the message with its size.
  std::string finish() {
    check(bytes_.size() - 4 <= kMaxMessage, "store: a message of ", bytes_.size(), " bytes, at most ", kMaxMessage);
    const auto size = static_cast<uint32_t>(bytes_.size() - 4);
    std::memcpy(bytes_.data(), &size, sizeof(size));
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// Reads a message without its size. Throws Error{kDataLoss} if it is too short.
class Reader {
 public:
  explicit Reader(std::string_view message) : left_(message) {}
  uint8_t kind() { return static_cast<uint8_t>(take(1)[0]); }
  int64_t number() {
    int64_t value;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::string text() {
    uint32_t size;
    std::memcpy(&size, take(sizeof(size)).data(), sizeof(size));
    return std::string(take(size));
  }
  std::vector<std::string> texts(size_t max_count = SIZE_MAX) {
    const int64_t count = number();
    if (count < 0 || static_cast<uint64_t>(count) > left_.size() / 4) fail_short();
    check(static_cast<uint64_t>(count) <= max_count, "store: ", count, " keys in one call, at most ", max_count);
    std::vector<std::string> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(text());
    return values;
  }

 private:
  std::string_view take(size_t count) {
    if (count > left_.size()) fail_short();
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  [[noreturn]] static void fail_short() { fail(ErrorCode::kDataLoss, "store: a message ends too early"); }

  std::string_view left_;
};

}  // namespace tensord::distributed::tcp
