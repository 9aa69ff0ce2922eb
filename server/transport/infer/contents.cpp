#include "server/transport/infer/contents.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "server/executor/model/unsigned_widening.h"

namespace tensord::server {
namespace {

using WireType = WireReader::WireType;
using Tag = WireReader::Tag;

// Size of an empty string on the wire: a tag and a length.
constexpr size_t kMinTypedText = 2;

// The field of InferTensorContents for a datatype, and its wire type.
struct Slot {
  uint32_t field = 0;  // 0: none
  WireType type = WireType::kVarint;
  const char* name = "";
};

Slot slot_of(DataType datatype) {
  switch (datatype) {
    case DataType::kBool: return {1, WireType::kVarint, "bool_contents"};
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32: return {2, WireType::kVarint, "int_contents"};
    case DataType::kInt64: return {3, WireType::kVarint, "int64_contents"};
    case DataType::kUint8:
    case DataType::kUint16:
    case DataType::kUint32: return {4, WireType::kVarint, "uint_contents"};
    case DataType::kUint64: return {5, WireType::kVarint, "uint64_contents"};
    case DataType::kFp32: return {6, WireType::kFixed32, "fp32_contents"};
    case DataType::kFp64: return {7, WireType::kFixed64, "fp64_contents"};
    case DataType::kBytes: return {8, WireType::kBytes, "bytes_contents"};
    default: return {};
  }
}

size_t smallest_wire_bytes(WireType type) {
  return type == WireType::kFixed32 ? 4 : type == WireType::kFixed64 ? 8 : 1;
}

[[noreturn]] void fail_count(const std::string& what, const Slot& slot, int64_t expected) {
  fail(ErrorCode::kInvalidArgument, "unexpected number of elements for ", what, ", expecting ", expected, " in ",
       slot.name);
}

// Checks the number of strings, with Triton's messages.
void check_string_count(const std::string& what, size_t got, int64_t expected) {
  check(static_cast<int64_t>(got) == expected, "expected ", expected, " string elements for ", what, ", got ", got);
}
void check_room_for_string(const std::string& what, size_t got, int64_t expected) {
  check(static_cast<int64_t>(got) != expected, "unexpected number of string elements ", got + 1, " for ", what,
        ", expecting ", expected);
}

// Writes elements sequentially and refuses more than the target holds.
class ElementWriter {
 public:
  ElementWriter(const Tensor& target, DataType datatype, const Slot& slot, const std::string& what)
      : at_(static_cast<char*>(target.raw_data())),
        left_(target.numel()),
        count_(target.numel()),
        size_bytes_(size_of(tensor_datatype(datatype))),
        is_widened_unsigned_(is_widened_unsigned(datatype)),
        wire_bits_(8 * size_of(datatype)),
        is_bool_(datatype == DataType::kBool),
        slot_(slot),
        what_(what) {}

  void add(WireReader& reader, WireType type) {
    uint64_t bits = type == WireType::kVarint    ? reader.read_varint()
                    : type == WireType::kFixed32 ? reader.read_fixed32()
                                                 : reader.read_fixed64();
    if (left_-- == 0) fail_count(what_, slot_, count_);
    if (is_bool_) bits = bits != 0;
    if (is_widened_unsigned_) {
      if (wire_bits_ < 64) bits &= (uint64_t{1} << wire_bits_) - 1;
      check(bits <= INT64_MAX, what_, " has an element above ", INT64_MAX, ", which no tensor can hold");
    }
    std::memcpy(at_, &bits, size_bytes_);  // little-endian: the low bytes, as the protocol narrows integers
    at_ += size_bytes_;
  }

  void add_packed(WireReader reader, WireType type) {
    if (type == WireType::kVarint) {
      while (!reader.at_end()) add(reader, type);
      return;
    }
    const size_t count = reader.remaining() / size_bytes_;
    if (reader.remaining() % size_bytes_ != 0 || count > static_cast<size_t>(left_)) fail_count(what_, slot_, count_);
    reader.copy_to(at_, count * size_bytes_);
    at_ += count * size_bytes_;
    left_ -= static_cast<int64_t>(count);
  }

  void finish() const {
    if (left_ != 0) fail_count(what_, slot_, count_);
  }

 private:
  char* at_;
  int64_t left_;
  int64_t count_;
  size_t size_bytes_;  // per element of the tensor
  bool is_widened_unsigned_;
  size_t wire_bits_;
  bool is_bool_;
  const Slot& slot_;
  const std::string& what_;
};

}  // namespace

Tensor decode_typed_contents(std::span<const WireReader> contents, DataType datatype, std::span<const int64_t> shape,
                             int64_t count, const std::string& what) {
  const Slot slot = slot_of(datatype);
  check(slot.field != 0, what, " has data-type ", name_of(datatype), ", which is sent in raw_input_contents only");
  uint64_t wire_bytes = 0;
  for (const WireReader& part : contents) wire_bytes += part.remaining();
  // Checked before allocation: the message cannot contain that many elements.
  if (static_cast<uint64_t>(count) > wire_bytes / smallest_wire_bytes(slot.type)) fail_count(what, slot, count);
  Tensor tensor = Tensor::empty(shape, *to_dtype(tensor_datatype(datatype)));
  ElementWriter writer(tensor, datatype, slot, what);
  for (WireReader part : contents) {
    while (!part.at_end()) {
      const Tag tag = part.read_tag();
      if (tag.field == slot.field && tag.type == WireType::kBytes) {
        writer.add_packed(part.read_range(), slot.type);
      } else if (tag.field == slot.field && tag.type == slot.type) {
        writer.add(part, slot.type);
      } else {
        part.skip(tag);
      }
    }
  }
  writer.finish();
  return tensor;
}

std::vector<std::string> decode_typed_strings(std::span<const WireReader> contents, int64_t count,
                                              const std::string& what) {
  std::vector<std::string> out;
  size_t wire_bytes = 0;
  for (const WireReader& part : contents) wire_bytes += part.remaining();
  out.reserve(std::min(static_cast<size_t>(count), wire_bytes / kMinTypedText));
  for (WireReader part : contents) {
    while (!part.at_end()) {
      const Tag tag = part.read_tag();
      if (tag.field == 8 && tag.type == WireType::kBytes) {
        check_room_for_string(what, out.size(), count);
        out.push_back(part.read_bytes());
      } else {
        part.skip(tag);
      }
    }
  }
  check_string_count(what, out.size(), count);
  return out;
}

std::vector<std::string> decode_raw_strings(WireReader raw, int64_t count, const std::string& what) {
  std::vector<std::string> out;
  out.reserve(std::min(static_cast<size_t>(count), raw.remaining() / sizeof(uint32_t)));
  while (!raw.at_end()) {
    check_room_for_string(what, out.size(), count);
    check(raw.remaining() >= sizeof(uint32_t), "incomplete string length indicator for ", what);
    const uint32_t size = raw.read_fixed32();
    check(size <= raw.remaining(), "incomplete string data for ", what, ", expecting string of length ", size,
          " but only ", raw.remaining(), " bytes available");
    std::string& text = out.emplace_back(size, '\0');
    raw.copy_to(text.data(), size);
  }
  check_string_count(what, out.size(), count);
  return out;
}

uint64_t raw_strings_bytes(const std::vector<std::string>& strings) {
  uint64_t size_bytes = 0;
  for (const std::string& text : strings) size_bytes += sizeof(uint32_t) + text.size();
  return size_bytes;
}

void append_raw_strings(std::string& out, const std::vector<std::string>& strings) {
  out.reserve(out.size() + raw_strings_bytes(strings));
  for (const std::string& text : strings) {
    const auto length = static_cast<uint32_t>(text.size());
    char bytes[sizeof(length)];
    std::memcpy(bytes, &length, sizeof(length));
    out.append(bytes, sizeof(length));
    out += text;
  }
}

}  // namespace tensord::server
