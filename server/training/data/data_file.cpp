#include "server/training/data/data_file.h"

#include <utility>

#include "core/base/error.h"

namespace tensord::server {

DataTable read_data_file(const std::string& path) {
  const std::string extension = files::extension_of(path);
  if (extension == "requests") return files::make_table(path, read_requests(path));
  NamedArrays arrays;
  if (!files::read_arrays(path, extension, arrays)) {
    fail(ErrorCode::kUnimplemented, path,
         ": files of this kind are not read; .npz, .safetensors, .pt, .csv and .requests are");
  }
  return files::make_table(path, std::move(arrays));
}

}  // namespace tensord::server
