#include "tensord/client/options.h"

#include <fstream>

#include "tensord/client/error.h"

namespace tensord::client {
namespace {

std::string read_text(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream in(path, std::ios::binary);
  // Uses read(), because stream iterators throw another exception if the path is a directory.
  std::string text;
  for (char piece[4096]; in.read(piece, sizeof(piece)), in.gcount() > 0;)
    text.append(piece, static_cast<size_t>(in.gcount()));
  if (!in.is_open() || in.bad()) throw NotFoundError(path + ": cannot be read");
  return text;
}

}  // namespace

TlsOptions TlsOptions::from_files(const std::string& root_certificates, const std::string& certificate_chain,
                                  const std::string& private_key) {
  return {.root_certificates = read_text(root_certificates),
          .certificate_chain = read_text(certificate_chain),
          .private_key = read_text(private_key),
          .server_name = {}};
}

}  // namespace tensord::client
