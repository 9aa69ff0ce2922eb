#pragma once

#include <cstdint>
#include <string>

#include "server/fetch/remote_file.h"

namespace tensord::server {

struct DownloadLimits {
  uint64_t max_bytes = 0;  // of this file
  int retries = 4;
};

// Brings a file to `path`, complete and with the right size and checksums. What an earlier call left in `path`.part is
// continued if the server still has the same file (Range with If-Range, or a known checksum). The file is flushed to
// the disk. Throws Error as exchange() does, besides: kDataLoss (another checksum or size; the part is removed),
// kResourceExhausted (larger than max_bytes; the disk is full).
void download(const RemoteFile& file, const RemoteFiles& remote, const std::string& path, const DownloadLimits& limits);

}  // namespace tensord::server
