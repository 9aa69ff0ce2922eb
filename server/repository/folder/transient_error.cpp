#include "server/repository/folder/transient_error.h"

#include <filesystem>
#include <system_error>

#include "core/base/atomic_file.h"
#include "core/base/error.h"

namespace tensord::server {

bool is_retryable(const std::exception& error) {
  if (dynamic_cast<const DiskError*>(&error) != nullptr) return true;
  if (const auto* known = dynamic_cast<const Error*>(&error)) return known->code() == ErrorCode::kUnavailable;
  const auto* of_files = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (of_files == nullptr) return false;
  const std::error_code& code = of_files->code();
  return code == std::errc::too_many_files_open || code == std::errc::too_many_files_open_in_system ||
         code == std::errc::not_enough_memory || code == std::errc::io_error;
}

}  // namespace tensord::server
