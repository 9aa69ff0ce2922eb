#include "tensord/client/options.h"

#include <fstream>
#include <iterator>

#include "tensord/client/error.h"

namespace tensord::client {
namespace {

std::string read_text(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
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
