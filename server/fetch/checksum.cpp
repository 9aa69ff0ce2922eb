#include "server/fetch/checksum.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/distributed/digest.h"

namespace tensord::server {

using distributed::Digest;
using distributed::DigestKind;

std::string sha256_hex(std::string_view bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.finish();
}

FileChecksums checksums_of(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) fail_file(path, "read", errno);
  Digest sha256, git(DigestKind::kSha1);
  git.add("blob " + std::to_string(std::filesystem::file_size(path)) + std::string(1, '\0'));
  std::vector<char> buffer(1 << 20);
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    sha256.add({buffer.data(), count});
    git.add({buffer.data(), count});
  }
  if (std::ferror(file.get()) != 0) fail_file(path, "read", errno);
  return {sha256.finish(), git.finish()};
}

}  // namespace tensord::server
