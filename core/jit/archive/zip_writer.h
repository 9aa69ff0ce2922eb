#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tensord::jit {

// Writes a zip file of stored entries whose payloads start at multiples of 64 bytes, so
// that readers can map them. An AtomicFile: finish() puts it on the disk and then in its place, without
// finish() nothing is left. Not thread-safe. Throws Error as AtomicFile does.
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path);
  ~ZipWriter();

  void add(const std::string& name, std::string_view bytes);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tensord::jit
