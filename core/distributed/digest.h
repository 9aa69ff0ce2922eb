#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tensord::distributed {

enum class DigestKind { kSha256, kSha1 };

// A digest of bytes that come in pieces, printed as by sha256sum. Not thread-safe.
class Digest {
 public:
  explicit Digest(DigestKind kind = DigestKind::kSha256);
  ~Digest();
  void add(std::string_view bytes);
  // Lower-case hexadecimal digits. Nothing can be added afterwards.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Whether these are 64 lower-case hexadecimal digits.
bool is_sha256(std::string_view text);

}  // namespace tensord::distributed
