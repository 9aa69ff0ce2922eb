// Files of named tensors, and files in memory: what is read in place, what is refused, and the effect of changes.
#include "core/jit/archive/safetensors.h"
#include "core/base/cancellation.h"
#include "core/base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"

namespace tensord::jit::safetensors_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class FileInMemory : public ::testing::Test {
 protected:
  FileInMemory() : path_((fs::path(::testing::TempDir()) / concat("safetensors.", getpid())).string()) {}
  ~FileInMemory() override { fs::remove(path_); }

  void write(const std::string& bytes) const {
    fs::remove(path_);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  // The code, and the message after the file name.
  template <class Fn>
  std::string error_of(Fn&& fn) const {
    try {
      fn();
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_THAT(text, StartsWith(path_ + ": "));
      return concat(to_string(error.code()), " ", text.substr(std::min(text.size(), path_.size() + 2)));
    }
    return "none";
  }
  const std::string path_;
};

class Safetensors : public FileInMemory {
 protected:
  static std::string file(const std::string& header, const std::string& data, uint64_t length) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 255);
    return bytes + header + data;
  }
  std::string error(const std::string& header, const std::string& data = std::string(16, '\1')) const {
    write(file(header, data, header.size()));
    return error_of([&] { read_safetensors(path_); });
  }
  // One tensor of this type and shape.
  std::string error_of_one(const char* dtype, const char* shape, const char* offsets) const {
    return error(concat(R"({"x":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)", offsets, "}}"));
  }
};

TEST_F(Safetensors, OneTensor) {
  const std::tuple<const char*, const char*, const char*, const char*> rows[] = {
      {"F32", "[4]", "[0,16]", "none"},
      {"F64", "[2]", "[0,16]", "none"},
      {"F16", "[2,4]", "[0,16]", "none"},
      {"BF16", "[8]", "[0,16]", "none"},
      {"I64", "[2,1]", "[0,16]", "none"},
      {"U8", "[16]", "[0,16]", "none"},
      {"BOOL", "[16]", "[0,16]", "none"},
      {"F32", "[4]", "[0,17]", "DATA_LOSS 'x': reaches past the end of the file"},
      {"F32", "[4]", "[16,0]", "DATA_LOSS 'x': reaches past the end of the file"},
      {"F32", "[5]", "[0,16]", "DATA_LOSS 'x': has 16 bytes of data for [5] of float32"},
      {"F32", "[3]", "[0,16]", "DATA_LOSS 'x': has 16 bytes of data for [3] of float32"},
      {"F32", "[4]", "[0,15]", "DATA_LOSS 'x': has 15 bytes of data for [4] of float32"},
      {"F32", "[3]", "[4,16]", "DATA_LOSS 'x': bytes before it belong to no tensor"},
      {"F32", "[3]", "[0,12]", "DATA_LOSS 4 bytes at the end belong to no tensor"},
      {"F32", "[-4]", "[0,16]", "DATA_LOSS 'x': the header has a bad number"},
      {"F32", "[4.0]", "[0,16]", "DATA_LOSS 'x': the header has a bad number"},
      {"F32", "[4]", "[0,16.0]", "DATA_LOSS 'x': the header has a bad number"},
      {"F32", "[4]", "[-1,16]", "DATA_LOSS 'x': the header has a bad number"},
      {"F32", "[9223372036854775808]", "[0,16]", "DATA_LOSS 'x': the header has a bad number"},
      {"F32", "[9223372036854775807]", "[0,16]", "DATA_LOSS 'x': has 16 bytes of data for"},
      {"C64", "[2]", "[0,16]", "UNIMPLEMENTED 'x': tensors of dtype C64 are not read"},
      {"F32", "4", "[0,16]", "DATA_LOSS 'x': the header lacks dtype, shape or data_offsets"},
      {"F32", "[4]", "16", "DATA_LOSS 'x': the header lacks dtype, shape or data_offsets"},
      {"F32", "[4]", "[16]", "DATA_LOSS 'x': the header lacks dtype, shape or data_offsets"},
      {"F32", "[4]", "[0,8,16]", "DATA_LOSS 'x': the header lacks dtype, shape or data_offsets"}};
  for (const auto& [dtype, shape, offsets, message] : rows) {
    EXPECT_THAT(error_of_one(dtype, shape, offsets), StartsWith(message)) << dtype << shape << offsets;
  }
  const auto ones = [](size_t dims) {
    std::string shape = "[4";
    for (size_t i = 1; i < dims; ++i) shape += ",1";
    return shape + "]";
  };
  EXPECT_EQ(error_of_one("F32", ones(kMaxDims).c_str(), "[0,16]"), "none");
  EXPECT_EQ(error_of_one("F32", ones(kMaxDims + 1).c_str(), "[0,16]"),
            concat("DATA_LOSS 'x': has ", kMaxDims + 1, " dimensions"));
}

TEST_F(Safetensors, Headers) {
  const std::string lacks = "DATA_LOSS 'x': the header lacks dtype, shape or data_offsets";
  for (const char* entry :
       {"1", R"({"shape":[4],"data_offsets":[0,16]})", R"({"dtype":1,"shape":[4],"data_offsets":[0,16]})",
        R"({"dtype":"F32","data_offsets":[0,16]})", R"({"dtype":"F32","shape":[4]})"}) {
    EXPECT_EQ(error(concat(R"({"x":)", entry, "}")), lacks) << entry;
  }
  const std::string none = "DATA_LOSS the header is not a JSON object of tensors";
  for (const char* header : {"", "[1]", "{", "{} {}", "1"}) EXPECT_EQ(error(header), none) << header;
  EXPECT_EQ(error("{}", ""), "none");
  EXPECT_EQ(error(R"({"__metadata__":{"format":"pt"}})", ""), "none");
  EXPECT_EQ(error("{}", "a"), "DATA_LOSS 1 bytes at the end belong to no tensor");
  const std::string x = R"("x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const auto y = [](const char* rest) { return concat(R"("y":{"dtype":"F32",)", rest, "}"); };
  EXPECT_EQ(error("{" + y(R"("shape":[2],"data_offsets":[8,16])") + "," + x + "}"), "none");  // in any order
  EXPECT_EQ(error("{" + x + "," + y(R"("shape":[2],"data_offsets":[4,12])") + "}"), "DATA_LOSS 'y': tensors overlap");
  EXPECT_EQ(error("{" + x + "," + y(R"("shape":[1],"data_offsets":[12,16])") + "}"),
            "DATA_LOSS 'y': bytes before it belong to no tensor");
  EXPECT_EQ(error("{" + x + "," + x + "}"), "DATA_LOSS 'x' appears twice in the header");
  EXPECT_EQ(error(R"({"x":{"dtype":"F32","dtype":"F32"}})"), "DATA_LOSS 'dtype' appears twice in the header");
  EXPECT_EQ(error(R"({"x":{"a":[[1]]}})"), "DATA_LOSS the header is nested more than 3 deep");
  EXPECT_EQ(error(R"({"x":{"dtype":"BOOL","shape":[16],"data_offsets":[0,16]}})", std::string(15, '\1') + "\2"),
            "DATA_LOSS 'x': a bool is neither 0 nor 1");
}

// A header with very many tensors is read in linear time, and can be cancelled.
TEST_F(Safetensors, ManyTensors) {
  std::string header = "{";
  for (int i = 0; i < 300'000; ++i)
    header += concat(i ? "," : "", "\"", i, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  header += "}";
  const CancellationScope limit({}, Clock::system().now_ns() + int64_t{30'000'000'000});
  const int64_t start = Clock::system().now_ns();
  EXPECT_EQ(error(header, ""), "none");
  EXPECT_LT(Clock::system().now_ns() - start, int64_t{30'000'000'000});
  int asked = 0;
  const CancellationScope given_up([&] { return ++asked > 1000; });
  try {
    read_safetensors(path_);
    FAIL() << "it goes on";
  } catch (const Error& caught) {
    EXPECT_EQ(caught.code(), ErrorCode::kCancelled);
  }
}

TEST_F(Safetensors, Lengths) {
  const std::string truncated = "DATA_LOSS is not a safetensors file, or is truncated";
  const auto error_of_bytes = [&](const std::string& bytes) {
    write(bytes);
    return error_of([&] { read_safetensors(path_); });
  };
  EXPECT_EQ(error_of_bytes(file("{}", "", 2)), "none");
  EXPECT_EQ(error_of_bytes(file("{}", "", 3)), truncated);
  EXPECT_EQ(error_of_bytes(std::string("\2\0\0\0\0\0\0", 7)), truncated);
  EXPECT_EQ(error_of_bytes(std::string(8, '\xff')), truncated);
  EXPECT_EQ(error_of_bytes(""), "DATA_LOSS is empty");
  // A header of 64 MiB is accepted, one more byte is not.
  const uint64_t max = 64 << 20;
  for (const uint64_t length : {max, max + 1}) {
    write(file("", "", length));
    fs::resize_file(path_, 8 + length);
    EXPECT_THAT(error_of([&] { read_safetensors(path_); }),
                StartsWith(length == max ? "DATA_LOSS the header is not a JSON"
                                         : "RESOURCE_EXHAUSTED has a header of 67108865 bytes, more than 67108864"));
  }
}

// Mapped and copied.
TEST_F(Safetensors, BytesThatAreNoBools) {
  const std::string header = R"({"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})";
  for (const bool copies : {false, true}) {
    const auto error_with = [&](const std::string& data) {
      write(file(header, data, header.size()));
      return error_of([&] { read_safetensors(path_, copies); });
    };
    EXPECT_EQ(error_with(std::string("\0\1", 2)), "none");
    EXPECT_THAT(error_with("\1\2"), HasSubstr("a bool is neither 0 nor 1")) << copies;
  }
}

TEST_F(Safetensors, AreReadWhereTheyLie) {
  const Tensor x = Tensor::empty(Dims{2, 3}, DType::kFloat32), flags = Tensor::empty(Dims{3}, DType::kBool);
  for (int64_t i = 0; i < 6; ++i) x.data<float>()[i] = static_cast<float>(i);
  for (int64_t i = 0; i < 3; ++i) flags.data<bool>()[i] = i == 1;
  const Tensor turned = x.as_view(Dims{3, 2}, Dims{1, 3}, 0), none = Tensor::empty(Dims{0, 4}, DType::kInt64);
  write_safetensors(path_, {{"flags", flags}, {"x", x}, {"turned", turned}, {"none", none}});
  const SafetensorsFile read = read_safetensors(path_), copied = read_safetensors(path_, /*copies=*/true);
  const auto at = [](const SafetensorsFile& file, const std::string& name) {
    for (const auto& [key, tensor] : file.tensors) {
      if (key == name) return tensor;
    }
    return Tensor();
  };
  const auto lies_in_file = [&](const Tensor& tensor) {
    const auto* address = static_cast<const char*>(tensor.raw_data());
    return address >= read.file->data() && address < read.file->data() + read.file->size();
  };
  EXPECT_TRUE(lies_in_file(at(read, "flags")));
  EXPECT_FALSE(lies_in_file(at(read, "x")));  // after three bytes it is not aligned
  EXPECT_FALSE(lies_in_file(at(copied, "flags")));
  for (const SafetensorsFile* file : {&read, &copied}) {
    EXPECT_EQ(at(*file, "x").data<float>()[5], 5);
    EXPECT_EQ(at(*file, "turned").sizes(), (Dims{3, 2}));
    EXPECT_EQ(at(*file, "turned").data<float>()[1], 3);
    EXPECT_TRUE(at(*file, "flags").data<bool>()[1]);
    EXPECT_EQ(at(*file, "none").sizes(), (Dims{0, 4}));
  }
  const Tensor complex = Tensor::empty(Dims{1}, DType::kComplex64);
  EXPECT_THAT(error_of([&] {
                write_safetensors(path_, {{"z", complex}});
              }),
              HasSubstr("'z' is of type complex64, which safetensors does not have"));
  EXPECT_EQ(read_safetensors(path_).tensors.size(), 4u);  // the old file stays
}

TEST_F(FileInMemory, WhatIsNoFile) {
  const auto open = [&] { return error_of([&] { MappedFile::open(path_); }); };
  EXPECT_THAT(open(), StartsWith("NOT_FOUND cannot be opened: "));
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(open(), "INVALID_ARGUMENT is not a regular file");
  write("");
  EXPECT_EQ(open(), "DATA_LOSS is empty");
  write("a");
  EXPECT_EQ(open(), "none");
}

TEST_F(FileInMemory, SaysWhenItChanged) {
  write(std::string(10000, 'a'));
  const auto file = MappedFile::open(path_);
  const auto check = [&] { return error_of([&] { file->check_unchanged(); }); };
  EXPECT_EQ(check(), "none");
  fs::last_write_time(path_, fs::last_write_time(path_) + std::chrono::seconds(1));
  EXPECT_THAT(check(), StartsWith("DATA_LOSS the file was written to while it was in use"));
  fs::resize_file(path_, 9999);
  EXPECT_THAT(check(), StartsWith("DATA_LOSS the file was cut off while it was in use"));
}

TEST_F(FileInMemory, StoragesAndPages) {
  constexpr size_t kPage = 4096, kPages = 9;
  if (sysconf(_SC_PAGESIZE) != static_cast<long>(kPage)) GTEST_SKIP() << "pages of another size";
  write(std::string(kPages * kPage, 'a'));
  auto file = MappedFile::open(path_);
  const size_t size = file->size();
  EXPECT_EQ(file->storage(0, size)->size_bytes(), size);
  EXPECT_EQ(file->storage(size, 0)->size_bytes(), 0u);
  EXPECT_THROW(file->storage(0, size + 1), Error);
  EXPECT_THROW(file->storage(size, 1), Error);
  EXPECT_THROW(file->storage(size + 1, 0), Error);
  // A page that was written is kept; all others are released, including the last one.
  size_t sum = 0;
  for (size_t page = 0; page < kPages; ++page) sum += static_cast<unsigned char>(file->data()[page * kPage]);
  EXPECT_EQ(sum, kPages * 'a');
  file->data()[3 * kPage] = 'b';
  EXPECT_EQ(file->release_pages(), (kPages - 1) * kPage);
  EXPECT_EQ(file->data()[3 * kPage], 'b');
  EXPECT_EQ(file->data()[8 * kPage], 'a');
  // The storage keeps the mapping alive after the file object is gone.
  const Storage kept = file->storage(0, 1);
  file = nullptr;
  EXPECT_EQ(*static_cast<const char*>(kept->data()), 'a');
}

}  // namespace
}  // namespace tensord::jit::safetensors_test
