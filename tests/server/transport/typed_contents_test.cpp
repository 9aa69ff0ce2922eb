// Elements of typed contents: only those of the dtype's own field, packed or single, in any number of parts.
#include "server/transport/infer/contents.h"

#include <gmock/gmock.h>

#include <cstring>

#include "tests/server/error_of.h"

namespace tensord::server::typed_contents_test {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& call) { return error_of(call).what(); }

WireReader reader_of(const std::string& bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  static std::vector<WireMessage> kept;  // readers point into them
  WireMessage wire;
  wire.add_piece({reinterpret_cast<const uint8_t*>(owner->data()), owner->size()});
  wire.owner = owner;
  return WireReader(kept.emplace_back(std::move(wire)));
}

// A field's element 1 on the wire: single with its wire type, and in packed encoding.
struct Field {
  int number, type;
  std::string element;
};
const Field kFields[] = {{1, 0, "\1"},
                         {2, 0, "\1"},
                         {3, 0, "\1"},
                         {4, 0, "\1"},
                         {5, 0, "\1"},
                         {6, 5, std::string("\0\0\x80\x3f", 4)},
                         {7, 1, std::string("\0\0\0\0\0\0\xf0\x3f", 8)}};
std::string tag(int field, int type) { return std::string(1, static_cast<char>(field << 3 | type)); }
std::string single(const Field& field) { return tag(field.number, field.type) + field.element; }
std::string packed(const Field& field, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += field.element;
  return tag(field.number, 2) + static_cast<char>(all.size()) + all;
}
// Unknown fields: a varint, a string, eight and four bytes, a group.
const std::string kUnknown =
    tag(9, 0) + "\5" + tag(10, 2) + "\3abc" + tag(11, 1) + "12345678" + tag(12, 5) + "1234" + tag(13, 3) + tag(13, 4);

std::string of_others(int own) {
  std::string out = kUnknown;
  for (const Field& field : kFields) {
    if (field.number != own) out += single(field) + packed(field, 2);
  }
  return own == 8 ? out : out + tag(8, 2) + "\4text";
}

TEST(TypedContents, OnlyTheirOwnFieldCounts) {
  const std::pair<DataType, int> rows[] = {{DataType::kBool, 1},   {DataType::kInt8, 2},   {DataType::kInt16, 2},
                                           {DataType::kInt32, 2},  {DataType::kInt64, 3},  {DataType::kUint8, 4},
                                           {DataType::kUint16, 4}, {DataType::kUint32, 4}, {DataType::kUint64, 5},
                                           {DataType::kFp32, 6},   {DataType::kFp64, 7}};
  for (const auto& [datatype, number] : rows) {
    SCOPED_TRACE(name_of(datatype));
    const Field& own = kFields[number - 1];
    const std::string others = of_others(number);
    const auto decoded = [&, datatype = datatype](const std::vector<std::string>& parts, int64_t count) {
      std::vector<WireReader> readers;
      for (const std::string& part : parts) readers.push_back(reader_of(part));
      return decode_typed_contents(readers, datatype, Dims{count}, count, "x");
    };
    for (const auto& parts : {std::vector<std::string>{others + single(own) + others + single(own)},
                              {others + packed(own, 2) + others},
                              {single(own) + packed(own, 1)},
                              {packed(own, 0), others, single(own), "", packed(own, 1)}}) {
      const Tensor tensor = decoded(parts, 2);
      for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(tensor.as_view({}, {}, i).item_double(), 1);
      EXPECT_THAT(message_of([&] { decoded(parts, 1); }), HasSubstr("unexpected number of elements"));
      EXPECT_THAT(message_of([&] { decoded(parts, 3); }), HasSubstr("unexpected number of elements"));
    }
    EXPECT_THAT(message_of([&] { decoded({others}, 1); }), HasSubstr("unexpected number of elements"));
    // A wire type that its elements never have is skipped.
    const int other_type = own.type == 5 ? 1 : 5;
    const std::string strange = tag(number, other_type) + std::string(other_type == 5 ? 4 : 8, '\1');
    EXPECT_EQ(decoded({strange + single(own)}, 1).as_view({}, {}, 0).item_double(), 1);
  }
}

TEST(TypedContents, PackedPiecesAreOfWholeElements) {
  for (const auto& [datatype, number] : {std::pair(DataType::kFp32, 6), std::pair(DataType::kFp64, 7)}) {
    const std::string& element = kFields[number - 1].element;
    const std::string short_piece =
        tag(number, 2) + static_cast<char>(2 * element.size() - 1) + (element + element).substr(1);
    const std::vector<WireReader> readers{reader_of(short_piece)};
    EXPECT_THAT(message_of([&] { decode_typed_contents(readers, datatype, Dims{2}, 2, "x"); }),
                HasSubstr("unexpected number of elements"));
  }
}

TEST(TypedContents, TextsOfTheirOwnFieldAlone) {
  const std::string text = tag(8, 2) + "\2ab", others = of_others(8);
  for (const auto& parts : {std::vector<std::string>{others + text + others + text}, {text, others, text}}) {
    std::vector<WireReader> readers;
    for (const std::string& part : parts) readers.push_back(reader_of(part));
    EXPECT_EQ(decode_typed_strings(readers, 2, "x"), (std::vector<std::string>{"ab", "ab"}));
    EXPECT_THAT(message_of([&] { decode_typed_strings(readers, 1, "x"); }),
                HasSubstr("unexpected number of string elements 2"));
    EXPECT_THAT(message_of([&] { decode_typed_strings(readers, 3, "x"); }),
                HasSubstr("expected 3 string elements for x, got 2"));
  }
  const std::vector<WireReader> strange{reader_of(tag(8, 0) + "\1" + text)};
  EXPECT_EQ(decode_typed_strings(strange, 1, "x"), std::vector<std::string>{"ab"});
}

// Neither one long string nor a count without elements may reserve memory.
TEST(TypedContents, RoomIsMadeForWhatCanCome) {
  const WireReader one[] = {reader_of(tag(8, 2) + "\x64" + std::string(100, 't'))};
  EXPECT_EQ(decode_typed_strings(one, 1, "x").capacity(), 1u);
  EXPECT_THAT(message_of([&] { decode_typed_strings(one, int64_t{1} << 50, "x"); }), HasSubstr("x"));
}

}  // namespace
}  // namespace tensord::server::typed_contents_test
