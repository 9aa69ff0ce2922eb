#include "server/training/data/data_file.h"

#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/memory/accounts.h"
#include "core/tensor/memory/owner_limit.h"

namespace tensord::server {

DataTable read_data_file(const std::string& path, const std::vector<std::string>& wanted) {
  const std::string extension = files::extension_of(path);
  if (extension == "requests") return files::make_table(path, read_requests(path));
  NamedArrays arrays;
  if (!files::read_arrays(path, extension, arrays, wanted)) {
    fail(ErrorCode::kUnimplemented, path,
         ": files of this kind are not read; .npz, .safetensors, .pt, .csv and .requests are");
  }
  return files::make_table(path, std::move(arrays));
}

std::string without_folder(const std::string& text, const std::string& folder) {
  std::error_code error;
  const std::string path = std::filesystem::canonical(folder, error).string();
  if (error || path.size() < 2) return text;
  std::string out;
  size_t taken = 0;
  for (size_t at = text.find(path); at != text.npos; at = text.find(path, at + 1)) {
    const bool begins = at == 0 || std::string_view(" '\"(").find(text[at - 1]) != std::string_view::npos;
    const size_t end = at + path.size();
    const char next = end < text.size() ? text[end] : ' ';
    if (!begins || (next != '/' && next != ':')) continue;
    out += concat(text.substr(taken, at - taken), next == '/' ? "" : "the data folder");
    taken = next == '/' ? end + 1 : end;
  }
  return out + text.substr(taken);
}

void check_data_names(const std::string& path, const std::vector<std::string>& wanted) {
  constexpr uintmax_t kMaxBytes = uintmax_t{64} << 20;
  constexpr uint64_t kMaxMemory = uint64_t{512} << 20;
  if (files::extension_of(path) == "csv") return files::check_csv_columns(path, wanted);
  if (std::filesystem::file_size(path) > kMaxBytes) return;
  // A compressed file may be much larger than it looks.
  static const OwnerId owner = memory_owner("job data check");
  set_owner_limit(owner, kMaxMemory);
  const MemoryOwnerScope scope(owner);
  try {
    const DataTable table = read_data_file(path);
    for (const std::string& name : wanted) table.at_or_joined(name);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kResourceExhausted) throw;  // the job reads it with its own memory
  }
}

}  // namespace tensord::server
