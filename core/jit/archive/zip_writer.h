#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tensord::jit {

// Writes a zip file of stored entries whose payloads are aligned to 64 bytes, so that readers can map them. It is an
// AtomicFile: finish() writes it to the disk and moves it to its place; without finish() no file remains. Not
// thread-safe. Throws Error as AtomicFile does.
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
