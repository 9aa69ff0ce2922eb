#include "core/base/rename_to_new.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>

#include "core/base/atomic_file.h"
#include "core/base/error.h"

namespace tensord {

void rename_to_new(const std::filesystem::path& from, const std::filesystem::path& target) {
  const auto fail_existing = [&] { fail(ErrorCode::kAlreadyExists, target.string(), ": is there already"); };
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) return;
  if (errno == EEXIST) fail_existing();
  // Some network file systems know no RENAME_NOREPLACE.
  if (errno != EINVAL && errno != ENOSYS) fail_file(target.string(), "written", errno);
  if (std::filesystem::exists(std::filesystem::symlink_status(target))) fail_existing();
  std::filesystem::rename(from, target);
}

}  // namespace tensord
