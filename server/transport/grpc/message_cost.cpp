#include "server/transport/grpc/message_cost.h"

#include "core/base/error.h"

namespace tensord::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using WireType = WireReader::WireType;
using Tag = WireReader::Tag;

constexpr int kMaxDepth = 100;  // protobuf's default
// Memory per message in a list or map, per string, per number in a list, and per unknown field that the parser keeps.
constexpr uint64_t kMessageBytes = 192, kTextObjectBytes = 96, kNumberBytes = 16, kUnknownBytes = 64;

uint64_t cost_of(WireReader reader, const Descriptor& type, int depth) {
  check(depth <= kMaxDepth, "the request is nested too deep");
  uint64_t cost = 0;
  while (!reader.at_end()) {
    const Tag tag = reader.read_tag();
    const FieldDescriptor* field = type.FindFieldByNumber(static_cast<int>(tag.field));
    const size_t before = reader.remaining();
    if (tag.type != WireType::kBytes) {
      reader.skip(tag);
      // Groups are unknown fields, with all that they contain: no message here has groups.
      cost += tag.type == WireType::kStartGroup ? (before - reader.remaining()) * kUnknownBytes
              : field == nullptr                ? kUnknownBytes
                                                : kNumberBytes;
      continue;
    }
    const WireReader range = reader.read_range();
    if (field == nullptr) {
      cost += kUnknownBytes + range.remaining();
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      cost += kMessageBytes + cost_of(range, *field->message_type(), depth + 1);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      cost += kTextObjectBytes + range.remaining();
    } else {
      cost += range.remaining() * kNumberBytes;  // packed repeated field
    }
  }
  return cost;
}

}  // namespace

uint64_t message_cost(const WireMessage& bytes, const Descriptor& type) { return cost_of(WireReader(bytes), type, 0); }

}  // namespace tensord::server
