// Each limit of the reader of protobuf's wire format, at it and beyond, in one piece and in pieces of every size.
#include "server/transport/grpc/wire_reader.h"

#include <gmock/gmock.h>

#include <cstring>

#include "server/executor/model/unsigned_widening.h"
#include "tests/server/error_of.h"

namespace tensord::server::wire_reader_test {
namespace {

using ::testing::HasSubstr;
using WireType = WireReader::WireType;

// The message lives as long as this object.
class Cut {
 public:
  // The first piece may have another size.
  Cut(const std::string& bytes, size_t piece_bytes, size_t first_bytes = 0) {
    if (first_bytes > 0) parts_.push_back(bytes.substr(0, first_bytes));
    for (size_t at = first_bytes; at < bytes.size(); at += piece_bytes) parts_.push_back(bytes.substr(at, piece_bytes));
    for (const std::string& part : parts_)
      wire_.add_piece({reinterpret_cast<const uint8_t*>(part.data()), part.size()});
  }
  WireReader reader() const { return WireReader(wire_); }

 private:
  std::vector<std::string> parts_;
  WireMessage wire_;
};

// The error for `bytes`, split in every way; it must always be the same.
std::string said(const std::string& bytes, const std::function<void(WireReader&)>& read) {
  std::string first;
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, bytes.size() + 1}) {
    const Cut cut(bytes, piece);
    WireReader reader = cut.reader();
    std::string now;
    try {
      read(reader);
      now = concat("read, ", reader.remaining(), " left");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      now = error.what();
    }
    if (first.empty()) first = now;
    EXPECT_EQ(now, first) << "in pieces of " << piece;
  }
  return first;
}

TEST(WireReaderBounds, Varints) {
  const auto value_of = [](const std::string& bytes) {
    uint64_t value = 1;
    const std::string out = said(bytes, [&](WireReader& reader) { value = reader.read_varint(); });
    return out == "read, 0 left" ? std::to_string(value) : out;
  };
  EXPECT_EQ(value_of(std::string("\0", 1)), "0");
  EXPECT_EQ(value_of("\x7f"), "127");
  EXPECT_EQ(value_of("\x80\x01"), "128");
  EXPECT_EQ(value_of("\xff\x7f"), "16383");
  const std::string nine(9, '\xff');
  EXPECT_EQ(value_of(nine + '\1'), std::to_string(UINT64_MAX));
  EXPECT_EQ(value_of(std::string(9, '\x80') + '\1'), std::to_string(uint64_t{1} << 63));
  EXPECT_THAT(value_of(nine + '\2'), HasSubstr("a varint is too long"));
  EXPECT_THAT(value_of(nine + "\x81"), HasSubstr("a varint is too long"));
  EXPECT_THAT(value_of(nine + "\x80\1"), HasSubstr("a varint is too long"));
  EXPECT_THAT(value_of(""), HasSubstr("it ends too early"));
  EXPECT_THAT(value_of("\x80"), HasSubstr("it ends too early"));
  EXPECT_THAT(value_of(nine), HasSubstr("it ends too early"));
  EXPECT_EQ(value_of(std::string("\x80\0", 2)), "0");
}

TEST(WireReaderBounds, Tags) {
  const auto tag_of = [](const std::string& bytes) {
    WireReader::Tag tag;
    const std::string out = said(bytes, [&](WireReader& reader) { tag = reader.read_tag(); });
    return out == "read, 0 left" ? concat(tag.field, " of type ", static_cast<int>(tag.type)) : out;
  };
  EXPECT_EQ(tag_of("\x08"), "1 of type 0");
  EXPECT_EQ(tag_of("\x0d"), "1 of type 5");
  EXPECT_THAT(tag_of("\x0e"), HasSubstr("a field tag is not valid"));
  EXPECT_THAT(tag_of("\x0f"), HasSubstr("a field tag is not valid"));
  EXPECT_THAT(tag_of(std::string("\0", 1)), HasSubstr("a field tag is not valid"));
  EXPECT_THAT(tag_of("\x07"), HasSubstr("a field tag is not valid"));
  EXPECT_EQ(tag_of("\xf8\xff\xff\xff\x0f"), "536870911 of type 0");
  EXPECT_THAT(tag_of("\x88\x80\x80\x80\x10"), HasSubstr("a field tag is not valid"));
}

TEST(WireReaderBounds, RangesAndParts) {
  const auto range = [](const std::string& bytes) {
    std::string text;
    const std::string out = said(bytes, [&](WireReader& reader) { text = reader.read_bytes(); });
    return out == "read, 0 left" ? text : out;
  };
  EXPECT_EQ(range("\3abc"), "abc");
  EXPECT_EQ(range(std::string("\0", 1)), "");
  EXPECT_THAT(range("\4abc"), HasSubstr("a field is longer than what is left"));
  EXPECT_EQ(range("\2abc"), "read, 1 left");
  const auto part = [](size_t count) {
    return said("abc", [&](WireReader& reader) {
      const WireReader part = reader.read_part(count);
      EXPECT_EQ(part.remaining(), count);
      EXPECT_EQ(part.at_end(), count == 0);
    });
  };
  EXPECT_EQ(part(0), "read, 3 left");
  EXPECT_EQ(part(3), "read, 0 left");
  EXPECT_THAT(part(4), HasSubstr("a part is longer than what is left"));
  // A part ends at its length, though the message continues.
  EXPECT_THAT(said("abc", [](WireReader& reader) { reader.read_part(2).advance(3); }), HasSubstr("it ends too early"));
  for (const size_t count : {0, 1, 2, 3}) {
    EXPECT_EQ(said("abc", [&](WireReader& reader) { reader.advance(count); }), concat("read, ", 3 - count, " left"));
  }
  EXPECT_THAT(said("abc", [](WireReader& reader) { reader.advance(4); }), HasSubstr("it ends too early"));
  std::string to(4, '-');
  EXPECT_EQ(said("abc", [&](WireReader& reader) { reader.copy_to(to.data(), 3); }), "read, 0 left");
  EXPECT_EQ(to, "abc-");
  EXPECT_THAT(said("abc", [&](WireReader& reader) { reader.copy_to(to.data(), 4); }), HasSubstr("it ends too early"));
  EXPECT_THAT(said("abc", [](WireReader& reader) { reader.read_fixed32(); }), HasSubstr("it ends too early"));
  EXPECT_EQ(said("abcd", [](WireReader& reader) { EXPECT_EQ(reader.read_fixed32(), 0x64636261u); }), "read, 0 left");
  EXPECT_THAT(said("abcdefg", [](WireReader& reader) { reader.read_fixed64(); }), HasSubstr("it ends too early"));
  EXPECT_EQ(said("abcdefgh", [](WireReader& reader) { reader.read_fixed64(); }), "read, 0 left");
}

TEST(WireReaderBounds, SkippedFields) {
  const auto skipped = [](const std::string& bytes) {
    return said(bytes, [](WireReader& reader) { reader.skip(reader.read_tag()); });
  };
  EXPECT_EQ(skipped("\x08\x80\x01."), "read, 1 left");
  EXPECT_EQ(skipped("\x09"
                    "12345678."),
            "read, 1 left");
  EXPECT_EQ(skipped("\x0d"
                    "1234."),
            "read, 1 left");
  EXPECT_EQ(skipped("\x0a\2ab."), "read, 1 left");
  EXPECT_THAT(skipped("\x09"
                      "1234567"),
              HasSubstr("it ends too early"));
  EXPECT_THAT(skipped("\x0d"
                      "123"),
              HasSubstr("it ends too early"));
  EXPECT_THAT(skipped("\x0a\3ab"), HasSubstr("a field is longer than what is left"));
  EXPECT_EQ(skipped("\x0b\x08\1\x0c."), "read, 1 left");
  EXPECT_EQ(skipped("\x0b\x13\x14\x0c."), "read, 1 left");
  EXPECT_THAT(skipped("\x0b\x08\1\x14"), HasSubstr("a group ends that was not begun"));
  EXPECT_THAT(skipped("\x0c"), HasSubstr("a group ends that was not begun"));
  EXPECT_THAT(skipped("\x0b\x08\1"), HasSubstr("it ends too early"));
}

TEST(WireReaderBounds, WhereBytesLie) {
  const std::string bytes = "\5abcde";
  const Cut whole(bytes, 64), halves(bytes, 3), exact(bytes, 1);
  WireReader in_whole = whole.reader(), in_halves = halves.reader(), in_exact = exact.reader();
  const WireReader a = in_whole.read_range(), b = in_halves.read_range(), c = in_exact.read_range();
  EXPECT_NE(a.contiguous(), nullptr);
  EXPECT_EQ(b.contiguous(), nullptr);
  EXPECT_EQ(c.contiguous(), nullptr);
  EXPECT_EQ(a.pieces().size(), 1u);
  EXPECT_EQ(b.pieces().size(), 2u);
  EXPECT_EQ(b.pieces()[0].size(), 2u);
  EXPECT_EQ(b.pieces()[1].size(), 3u);
  EXPECT_EQ(c.pieces().size(), 5u);
  EXPECT_EQ(in_whole.contiguous(), nullptr);  // nothing is left
  EXPECT_TRUE(in_whole.pieces().empty());
  // A part of a piece does not extend to the whole piece.
  WireReader piece = whole.reader();
  EXPECT_EQ(piece.read_part(2).pieces().at(0).size(), 2u);
  // A part that ends with its piece is contiguous.
  WireReader rest = halves.reader();
  rest.advance(3);
  EXPECT_NE(rest.contiguous(), nullptr);
}

// Larger than the caches: every offset to a cache line, and the rest after the last whole one.
TEST(WireReaderBounds, LargeCopiesBeginAndEndAnywhere) {
  const size_t min = size_t{16} << 20;
  std::string bytes(min + 130, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 131 >> 3);
  for (const size_t count : {min - 1, min, min + 63, min + 130}) {
    for (const size_t piece : {bytes.size(), size_t{1} << 20, (size_t{1} << 20) + 33}) {
      const Cut cut(bytes.substr(0, count), piece, piece / 100'000);
      for (const size_t shift : {0, 1, 63}) {
        std::string to(count + 130, '-');
        cut.reader().copy_to(to.data() + shift, count);
        EXPECT_TRUE(std::memcmp(to.data() + shift, bytes.data(), count) == 0) << count << " " << shift;
        EXPECT_EQ(to[shift + count], '-');
        EXPECT_TRUE(shift == 0 || to[shift - 1] == '-');
      }
    }
  }
}

// Unsigned numbers from the wire, widened to the signed dtypes of tensors, and back.
TEST(WideUnsigned, EveryNumberThatATensorCanHold) {
  const auto through = [](DataType datatype, const std::string& wire) {
    const auto count = static_cast<int64_t>(wire.size() / size_of(datatype));
    const WidenedTensor wide = make_widened_tensor(datatype, Dims{count});
    std::memcpy(wide.wire_bytes, wire.data(), wire.size());
    widen(wide, datatype, "input 'x'");
    std::string back;
    append_narrowed(wide.tensor, datatype, back);
    EXPECT_EQ(back, wire) << name_of(datatype);
    return wide.tensor;
  };
  for (const auto& [datatype, bytes, max] :
       {std::tuple(DataType::kUint16, 2, 65535.0), std::tuple(DataType::kUint32, 4, 4294967295.0)}) {
    std::string wire(static_cast<size_t>(3 * bytes), '\0');
    std::fill(wire.begin() + bytes, wire.begin() + 2 * bytes, '\xff');
    wire[static_cast<size_t>(2 * bytes)] = 1;
    const Tensor out = through(datatype, wire).to(DType::kFloat64);
    EXPECT_EQ(out.data<double>()[0], 0);
    EXPECT_EQ(out.data<double>()[1], max);
    EXPECT_EQ(out.data<double>()[2], 1);
    EXPECT_EQ(through(datatype, "").numel(), 0);
  }
  const std::string largest = std::string(7, '\xff') + '\x7f', above = std::string(7, '\0') + '\x80';
  EXPECT_EQ(through(DataType::kUint64, largest).data<int64_t>()[0], INT64_MAX);
  const Error error = error_of([&] { through(DataType::kUint64, largest + above); });
  EXPECT_THAT(error.what(), HasSubstr("input 'x' has an element above 9223372036854775807, which no tensor can hold"));
}

}  // namespace
}  // namespace tensord::server::wire_reader_test
