#include "server/executor/model/read_exactly.h"

#include <filesystem>
#include <fstream>

#include "core/base/error.h"

namespace tensord::server {

void read_exactly(const std::string& file, char* data, size_t size_bytes, const std::string& what) {
  std::error_code error;
  const uintmax_t found = std::filesystem::file_size(file, error);
  check(!error, what, ": ", file, " cannot be read");
  check(found == size_bytes, what, ": ", file, " has ", found, " bytes, expected ", size_bytes);
  std::ifstream in(file, std::ios::binary);
  in.read(data, static_cast<std::streamsize>(size_bytes));
  check(in.good(), what, ": ", file, " cannot be read");
}

}  // namespace tensord::server
