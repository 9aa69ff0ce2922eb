#include "core/distributed/proof.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/base/sha256.h"

namespace tensord::distributed {
namespace {

constexpr size_t kBlockSize = 64;

std::string digest(std::string_view first, std::string_view second) {
  Sha256 hash;
  hash.add(first);
  hash.add(second);
  const std::string digits = hash.finish();
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

}  // namespace

std::string message_proof(std::string_view key, std::string_view message) {
  std::string block(key.size() > kBlockSize ? digest(key, "") : std::string(key));
  block.resize(kBlockSize, '\0');
  std::string inner = block, outer = block;
  for (char& byte : inner) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  return digest(outer, digest(inner, message));
}

bool is_same_proof(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  int difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t done = 0; done < count;) {
    const ssize_t got = getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno != EINTR) fail(ErrorCode::kUnavailable, "random numbers: ", std::strerror(errno));
    if (got > 0) done += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace tensord::distributed
