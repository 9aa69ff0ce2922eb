#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

#include "core/base/device.h"

namespace tensord::jit {

// The opcodes of pickle protocol 2 that the writers of values use, and the memo: what was written once
// is referred to afterwards. Only opcodes that torch.load(weights_only=True) knows.
class PickleWriter {
 protected:
  PickleWriter() : out_("\x80\x02") {}

  void write_number(uint64_t number, size_t bytes);  // little-endian
  void write_int(int64_t value);
  void write_float(double value);
  void write_string(const std::string& text);  // throws Error{kResourceExhausted}
  void write_device(Device device);
  void write_dims(std::span<const int64_t> dims);
  // The class or function `name` of a Python module.
  void write_global(const std::string& module, const std::string& name);

  // Notes what is on top of the stack; gives back its number for write_get.
  uint32_t write_put();
  void write_get(uint32_t index);
  // Notes what is on top of the stack as `object`.
  void remember(const void* object) { memo_.emplace(object, write_put()); }
  // Whether the object was written before; then it is referred to.
  bool write_known(const void* object);

  std::string out_;

 private:
  std::map<std::string, uint32_t> globals_;
  std::unordered_map<const void*, uint32_t> memo_;
  uint32_t memo_count_ = 0;
};

}  // namespace tensord::jit
