#include "server/fetch/checksum.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/distributed/hmac.h"

namespace tensord::server {
namespace {

// A digest that is fed in pieces.
class Digest {
 public:
  explicit Digest(const EVP_MD* kind) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    check_internal(context_ && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1, "no digest from OpenSSL");
  }
  void add(std::string_view bytes) {
    check_internal(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "a digest failed");
  }
  std::string hex() {
    unsigned char out[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    check_internal(EVP_DigestFinal_ex(context_.get(), out, &size) == 1, "a digest failed");
    return distributed::hex_of({reinterpret_cast<const char*>(out), size});
  }

 private:
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  Digest digest(EVP_sha256());
  digest.add(bytes);
  return digest.hex();
}

FileChecksums checksums_of(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) fail_file(path, "read", errno);
  Digest sha256(EVP_sha256()), git(EVP_sha1());
  git.add("blob " + std::to_string(std::filesystem::file_size(path)) + std::string(1, '\0'));
  std::vector<char> buffer(1 << 20);
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    sha256.add({buffer.data(), count});
    git.add({buffer.data(), count});
  }
  if (std::ferror(file.get()) != 0) fail_file(path, "read", errno);
  return {sha256.hex(), git.hex()};
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace tensord::server
