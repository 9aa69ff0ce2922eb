#include "core/jit/archive/pickle_writer.h"

#include <bit>

#include "core/base/error.h"

namespace tensord::jit {

void PickleWriter::write_number(uint64_t number, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out_ += static_cast<char>(number >> (8 * i) & 0xff);
}

void PickleWriter::write_int(int64_t value) {
  if (value >= 0 && value < 256) {
    out_ += 'K';
    write_number(static_cast<uint64_t>(value), 1);
  } else if (value >= 0 && value < 65536) {
    out_ += 'M';
    write_number(static_cast<uint64_t>(value), 2);
  } else if (value == static_cast<int32_t>(value)) {
    out_ += 'J';
    write_number(static_cast<uint64_t>(value), 4);
  } else {
    out_ += "\x8a\x08";
    write_number(static_cast<uint64_t>(value), 8);
  }
}

void PickleWriter::write_float(double value) {
  out_ += 'G';
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift & 0xff);
}

void PickleWriter::write_string(const std::string& text) {
  if (text.size() > 0x7fffffff)
    fail(ErrorCode::kResourceExhausted, "pickle: a str of ", text.size(), " bytes is too long");
  out_ += 'X';
  write_number(text.size(), 4);
  out_ += text;
}

void PickleWriter::write_global(const std::string& module, const std::string& name) {
  const auto [it, is_new] = globals_.emplace(module + "\n" + name, memo_count_);
  if (!is_new) return write_get(it->second);
  out_ += 'c' + module + "\n" + name + "\n";
  write_put();
}

uint32_t PickleWriter::write_put() {
  const uint32_t index = memo_count_++;
  out_ += index < 256 ? 'q' : 'r';
  write_number(index, index < 256 ? 1 : 4);
  return index;
}

void PickleWriter::write_get(uint32_t index) {
  out_ += index < 256 ? 'h' : 'j';
  write_number(index, index < 256 ? 1 : 4);
}

bool PickleWriter::write_known(const void* object) {
  const auto it = memo_.find(object);
  if (it == memo_.end()) return false;
  write_get(it->second);
  return true;
}

void PickleWriter::write_device(Device device) {
  write_global("torch", "device");
  write_string(to_string(device));
  out_ += "\x85R";
}

void PickleWriter::write_dims(std::span<const int64_t> dims) {
  if (dims.empty()) {
    out_ += ')';
    return;
  }
  out_ += '(';
  for (const int64_t dim : dims) write_int(dim);
  out_ += 't';
}

}  // namespace tensord::jit
