#include "core/distributed/digest.h"

#include <openssl/evp.h>

#include "core/base/error.h"
#include "core/distributed/hmac.h"

namespace tensord::distributed {

struct Digest::Context {
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> md{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Digest::Digest(DigestKind kind) : context_(std::make_unique<Context>()) {
  const EVP_MD* md = kind == DigestKind::kSha256 ? EVP_sha256() : EVP_sha1();
  check_internal(context_->md && EVP_DigestInit_ex(context_->md.get(), md, nullptr) == 1, "no digest from OpenSSL");
}

Digest::~Digest() = default;

void Digest::add(std::string_view bytes) {
  check_internal(EVP_DigestUpdate(context_->md.get(), bytes.data(), bytes.size()) == 1, "a digest failed");
}

std::string Digest::finish() {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  check_internal(EVP_DigestFinal_ex(context_->md.get(), out, &size) == 1, "a digest failed");
  return hex_of({reinterpret_cast<const char*>(out), size});
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace tensord::distributed
