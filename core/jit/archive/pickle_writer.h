#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

#include "core/base/device.h"

namespace tensord::jit {

// Writes opcodes of pickle protocol 2, and keeps the memo that lets a value refer to an earlier one. It uses only
// opcodes that torch.load(weights_only=True) accepts.
class PickleWriter {
 protected:
  PickleWriter() : out_("\x80\x02") {}

  void write_number(uint64_t number, size_t bytes);  // little-endian
  void write_int(int64_t value);
  void write_float(double value);
  void write_string(const std::string& text);  // throws Error{kResourceExhausted}
  void write_device(Device device);
  void write_dims(std::span<const int64_t> dims);
  // Writes a reference to the class or function `name` of a Python module.
  void write_global(const std::string& module, const std::string& name);

  // Adds the top of the stack to the memo. Returns its index for write_get.
  uint32_t write_put();
  void write_get(uint32_t index);
  // Adds the top of the stack to the memo under `object`.
  void remember(const void* object) { memo_.emplace(object, write_put()); }
  // Writes a reference and returns true if the object is in the memo.
  bool write_known(const void* object);

  std::string out_;

 private:
  std::map<std::string, uint32_t> globals_;
  std::unordered_map<const void*, uint32_t> memo_;
  uint32_t memo_count_ = 0;
};

}  // namespace tensord::jit
