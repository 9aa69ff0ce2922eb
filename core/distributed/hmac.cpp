#include "core/distributed/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <ostream>

#include "core/base/error.h"

namespace tensord::distributed {
namespace {

constexpr unsigned int kHmacBytes = 32;

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string proof(kHmacBytes, '\0');
  unsigned int size = 0;
  const unsigned char* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                                   reinterpret_cast<unsigned char*>(proof.data()), &size);
  check_internal(made != nullptr && size == kHmacBytes, "OpenSSL makes no HMAC-SHA256");
  return proof;
}

bool is_equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
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

std::string hex_of(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    for (const int shift : {4, 0}) out += "0123456789abcdef"[static_cast<uint8_t>(c) >> shift & 15];
  }
  return out;
}

}  // namespace tensord::distributed
