#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tensord::server {

struct FetchOptions {
  std::string source;
  // The folder or file to make, which must not exist.
  std::string destination;
  std::map<std::string, std::string> sha256 = {};  // by the name of a file; "" is the only one
  std::vector<std::string> included = {};          // patterns of names; empty: all
  uint64_t max_bytes = 0;                          // of all files together
  int retries = 4;
};

struct Fetched {
  std::string path;
  size_t files = 0;
  uint64_t size_bytes = 0;
};

// Brings the files of a source (see list_source()) to the destination, which appears complete or not at all. Files are
// gathered in a folder `.NAME.fetch` beside it; what an interrupted call left there is continued by the next one of the
// same source. One call at a time for a destination. `report` is called for each file that is complete. Throws Error:
// kAlreadyExists, kFailedPrecondition (another call is under way), and what list_source() and download() throw.
Fetched fetch(const FetchOptions& options, const std::function<void(const std::string& name, uint64_t size)>& report);

// Where fetch() puts what `options` name, without asking the source.
std::string fetch_path(const FetchOptions& options);

}  // namespace tensord::server
