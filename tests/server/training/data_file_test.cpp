// Files of training data: written by numpy and torch, CSV, and damaged or malicious files.
#include "server/training/data/data_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "core/base/error.h"
#include "core/tensor/allocator.h"
#include "core/tensor/memory/caching_allocator.h"
#include "tests/support/places.h"

namespace tensord::server::data_file_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class DataFile : public ::testing::Test {
 public:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / concat("data_files_", getpid());
    fs::create_directories(folder_);
    const std::string command =
        concat(tests_python(), " '", tests_folder(), "/server/make_data_files.py' '", folder_.string(), "'");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static std::string path(const std::string& name) { return folder_ / name; }
  static std::string write(const std::string& name, const std::string& bytes) {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  static std::string bytes_of(const std::string& name) {
    std::ostringstream out;
    out << std::ifstream(path(name), std::ios::binary).rdbuf();
    return out.str();
  }

 private:
  static inline fs::path folder_;
};

// The message without its path prefix, which must be there.
std::string error_of(const std::string& path, ErrorCode* code = nullptr) {
  try {
    read_data_file(path);
  } catch (const Error& error) {
    if (code) *code = error.code();
    const std::string text = error.what();
    EXPECT_EQ(text.substr(0, path.size() + 2), path + ": ");
    return text.substr(std::min(text.size(), path.size() + 2));
  }
  return "no error";
}

void expect_columns(const DataTable& table) {
  EXPECT_EQ(table.rows, 4);
  EXPECT_EQ(table.arrays.size(), 10u);
  for (const auto& [name, dtype] : std::vector<std::pair<std::string, DType>>{{"f16", DType::kFloat16},
                                                                              {"f32", DType::kFloat32},
                                                                              {"f64", DType::kFloat64},
                                                                              {"i8", DType::kInt8},
                                                                              {"i16", DType::kInt16},
                                                                              {"i32", DType::kInt32},
                                                                              {"i64", DType::kInt64},
                                                                              {"u8", DType::kUInt8},
                                                                              {"b", DType::kBool}}) {
    const Tensor& array = table.at(name);
    EXPECT_EQ(array.dtype(), dtype) << name;
    EXPECT_EQ(to_string(array.sizes()), name[0] == 'f' ? "[4, 3, 2]" : "[4]") << name;
    EXPECT_TRUE(array.is_contiguous());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.raw_data()) % size_of(dtype), 0u) << name;
    const Tensor values = array.to(DType::kFloat64);
    for (int64_t i = 0; i < values.numel(); ++i)
      EXPECT_EQ(values.data<double>()[i], static_cast<double>(name == "b" ? i % 2 : i)) << name;
  }
  EXPECT_EQ(to_string(table.at("empty").sizes()), "[4, 0]");
}

TEST_F(DataFile, TextsNameWhatIsBelowTheFolder) {
  const std::string folder = fs::canonical(fs::path(path("x")).parent_path()).string();
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {folder + "/a/b.csv: line 3", "a/b.csv: line 3"},
           {"sample 3: " + folder + "/x.png and '" + folder + "/y'", "sample 3: x.png and 'y'"},
           {folder + ": has no classes", "the data folder: has no classes"},
           {"/other" + folder + "/x: and " + folder + "2/x", "/other" + folder + "/x: and " + folder + "2/x"},
           {"no path", "no path"}}) {
    EXPECT_EQ(without_folder(text, folder), expected);
  }
  EXPECT_EQ(without_folder("/a: b", "/"), "/a: b");
  EXPECT_EQ(without_folder(folder + "/a", folder + "/none"), folder + "/a");
}

TEST_F(DataFile, EveryFormatGivesTheSame) {
  for (const char* name :
       {"stored.npz", "deflated.npz", "fortran.npz", "aligned.safetensors", "unaligned.safetensors", "dict.pt"}) {
    SCOPED_TRACE(name);
    expect_columns(read_data_file(path(name)));
  }
  const DataTable pair = read_data_file(path("tuple.pt"));
  EXPECT_EQ(pair.at("1").dtype(), DType::kInt64);
  EXPECT_EQ(to_string(read_data_file(path("list.pt")).at("0").sizes()), "[4, 2, 3]");
  EXPECT_TRUE(read_data_file(path("list.pt")).at("0").is_contiguous());
}

TEST_F(DataFile, WritesStayInTheProcess) {
  const DataTable table = read_data_file(path("aligned.safetensors"));
  table.at("f64").data<double>()[3] = 77;
  EXPECT_EQ(read_data_file(path("aligned.safetensors")).at("f64").data<double>()[3], 3);
}

TEST_F(DataFile, MemoryIsChargedToTheOwner) {
  std::string text = "a,b\n";
  for (int i = 0; i < 20000; ++i) text += "1,2.5\n";
  write("large.csv", text);
  const OwnerId owner = memory_owner("job/data");
  const MemoryOwnerScope scope(owner);
  const DataTable table = read_data_file(path("large.csv"));
  EXPECT_GE(cpu_allocator().live_bytes_of(owner), 2u * 20000 * 8);
  EXPECT_LE(cpu_allocator().live_bytes_of(owner), 3u * 20000 * 8);
}

TEST_F(DataFile, Csv) {
  write("a.csv",
        "\xef\xbb\xbfx.1, \"x.0\" ,label,\"the \"\"weight\"\"\",flag\r\n"
        "1,2,3,4.5,+1\r\n"
        "\r\n"
        " -1 ,\"2.5\",3000000000,-1e-3,0\n"
        "0,nan,9007199254740993,inf,1");
  const DataTable table = read_data_file(path("a.csv"));
  EXPECT_EQ(table.rows, 3);
  ASSERT_EQ(table.arrays.size(), 4u);
  const Tensor& x = table.at("x");
  EXPECT_EQ(to_string(x.sizes()), "[3, 2]");
  EXPECT_EQ(x.dtype(), DType::kFloat64);
  EXPECT_EQ(x.data<double>()[0], 2);
  EXPECT_EQ(x.data<double>()[1], 1);
  EXPECT_EQ(x.data<double>()[2], 2.5);
  EXPECT_EQ(x.data<double>()[3], -1);
  EXPECT_TRUE(std::isnan(x.data<double>()[4]));
  EXPECT_EQ(table.at("label").dtype(), DType::kInt64);
  EXPECT_EQ(table.at("label").data<int64_t>()[2], 9007199254740993);
  EXPECT_EQ(table.at("the \"weight\"").data<double>()[1], -1e-3);
  EXPECT_EQ(table.at("flag").dtype(), DType::kInt64);
  write("gap.csv", "x.0,x.2,y.a\n1,2,3\n");
  EXPECT_EQ(to_string(read_data_file(path("gap.csv")).at("x.2").sizes()), "[1]");
}

TEST_F(DataFile, CsvErrorsNameLineAndColumn) {
  const auto error = [&](const std::string& text) { return error_of(write("bad.csv", text)); };
  EXPECT_EQ(error("a,b\n1,2\n\n3,four\n"), "line 4: column 'b': 'four' is not a number");
  EXPECT_EQ(error("a,b\n1,\n"), "line 2: column 'b': the field is empty");
  EXPECT_EQ(error("a,b\n1,2,3\n"), "line 2: has 3 fields, the header has 2");
  EXPECT_EQ(error("a,b\n1\n"), "line 2: has 1 fields, the header has 2");
  EXPECT_EQ(error("a,a\n1,2\n"), "line 1: column 'a' is named twice");
  EXPECT_EQ(error("a,,b\n"), "line 1: column 2 has no name");
  EXPECT_EQ(error("x,x.0\n1,2\n"), "line 1: columns 'x' and 'x.0' both give the array 'x'");
  EXPECT_EQ(error("a,b\n1,\"2\n"), "line 2: a quoted field does not end where it should");
  EXPECT_EQ(error("a,b\n1,\"2\"3\n"), "line 2: a quoted field does not end where it should");
  EXPECT_EQ(error("a\n1e999\n"), "line 2: column 'a': '1e999' is not a number");
  EXPECT_EQ(error("a\n\x1b[2J\n"), "line 2: column 'a': '?[2J' is not a number");
  EXPECT_EQ(error("a,b\n"), "holds no rows");
  EXPECT_EQ(error("\n \n"), "line 2: there is no header");
  EXPECT_EQ(error(""), "is empty");
}

TEST_F(DataFile, Unsupported) {
  ErrorCode code{};
  const auto not_read = [](const std::string& dtype) {
    return concat("'x': arrays of dtype '", dtype, "' are not read; bool, uint8, int8 to int64 and float16 to float64 ",
                  "(little-endian) are");
  };
  EXPECT_EQ(error_of(path("big_endian.npz"), &code), not_read(">f4"));
  EXPECT_EQ(code, ErrorCode::kUnimplemented);
  EXPECT_EQ(error_of(path("objects.npz")), not_read("|O"));
  EXPECT_EQ(error_of(path("structured.npz")), "'x': is a structured array");
  EXPECT_EQ(error_of(path("unsigned.npz")), not_read("<u4"));
  EXPECT_EQ(error_of(path("rows.npz")), "'y' has 4 rows, 'x' has 3");
  EXPECT_THAT(error_of(path("scalar.npz")), HasSubstr("'x' is a single number"));
  EXPECT_EQ(error_of(path("no_rows.npz")), "holds no rows");
  EXPECT_EQ(error_of(path("text.pt")), "'x' is a str, not a tensor");
  EXPECT_THAT(error_of(write("a.parquet", "x"), &code), HasSubstr("files of this kind are not read"));
  EXPECT_THAT(error_of(path("none.npz"), &code), HasSubstr("cannot be opened"));
  EXPECT_EQ(code, ErrorCode::kNotFound);
  fs::create_directory(path("folder.csv"));
  EXPECT_EQ(error_of(path("folder.csv")), "is not a regular file");
  ASSERT_EQ(mkfifo(path("pipe.safetensors").c_str(), 0600), 0);
  EXPECT_EQ(error_of(path("pipe.safetensors")), "is not a regular file");
}

std::string safetensors(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 255);
  return length + header + data;
}

TEST_F(DataFile, HostileSafetensors) {
  const auto error = [&](const std::string& header, const std::string& data = std::string(16, 'x')) {
    return error_of(write("bad.safetensors", safetensors(header, data)));
  };
  const std::string good = R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";
  EXPECT_EQ(error(good), "no error");
  EXPECT_EQ(error(R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[0,17]}})"),
            "'x': reaches past the end of the file");
  EXPECT_EQ(error(R"({"x":{"dtype":"F32","shape":[5],"data_offsets":[0,16]}})"),
            "'x': has 16 bytes of data for [5] of float32");
  EXPECT_EQ(error(R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}})"),
            "'x': reaches past the end of the file");
  EXPECT_EQ(error(R"({"x":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})"), "'x': the header has a bad number");
  EXPECT_EQ(error(R"({"x":{"dtype":"F32","shape":[4.0],"data_offsets":[0,16]}})"), "'x': the header has a bad number");
  EXPECT_THAT(error(R"({"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]}})"),
              HasSubstr("'x': "));
  EXPECT_EQ(error(R"({"x":{"dtype":"C64","shape":[2],"data_offsets":[0,16]}})"),
            "'x': tensors of dtype C64 are not read");
  EXPECT_EQ(error(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("y":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})"),
            "'y': tensors overlap");
  EXPECT_EQ(error(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("y":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})"),
            "'y': bytes before it belong to no tensor");
  EXPECT_EQ(error(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
            "8 bytes at the end belong to no tensor");
  EXPECT_EQ(error(good.substr(0, good.size() - 1) + "," + good.substr(1)), "'x' appears twice in the header");
  EXPECT_EQ(error(R"({"x":{"dtype":"BOOL","shape":[16],"data_offsets":[0,16]}})"), "'x': a bool is neither 0 nor 1");
  EXPECT_EQ(error(R"({"x":{"dtype":"F32"}})"), "'x': the header lacks dtype, shape or data_offsets");
  EXPECT_EQ(error("[1]"), "the header is not a JSON object of tensors");
  EXPECT_EQ(error("{"), "the header is not a JSON object of tensors");
  EXPECT_EQ(error(std::string(1 << 20, '[')), "the header is not a JSON object of tensors");
  EXPECT_NE(error("{\"x\":{\"shape\":" + std::string(1 << 20, '[')), "");
  EXPECT_EQ(error("{}", ""), "holds no arrays");
  EXPECT_EQ(error_of(write("short.safetensors", "abc")), "is not a safetensors file, or is truncated");
  EXPECT_EQ(error_of(write("long.safetensors", std::string(8, '\xff'))), "is not a safetensors file, or is truncated");
}

// Every file, truncated and with bytes changed: an Error that names the file, or a readable table.
TEST_F(DataFile, DamagedFilesNeverCrash) {
  write("valid.csv", "a,b.0,b.1\n1,2,3\n4,\"5\",6.5\n");
  std::mt19937 random(1);
  int64_t failed = 0, read = 0;
  for (const char* name : {"stored.npz", "deflated.npz", "aligned.safetensors", "dict.pt", "valid.csv"}) {
    const std::string valid = bytes_of(name);
    const std::string extension = fs::path(name).extension();
    for (int i = 0; i < 200; ++i) {
      std::string bytes = valid;
      // Headers come first in most formats, the directory of a zip last.
      const size_t limit = i % 3 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 700);
      const size_t at = i % 3 == 1 ? bytes.size() - 1 - random() % limit : random() % limit;
      if (i % 5 == 0)
        bytes.resize(at);
      else
        for (unsigned k = 0; k <= random() % 3; ++k)
          bytes[std::min(at + k, bytes.size() - 1)] = static_cast<char>(random());
      const std::string damaged = write("damaged" + extension, bytes);
      try {
        // Every element must be readable.
        for (const auto& [array, tensor] : read_data_file(damaged).arrays) {
          EXPECT_EQ(tensor.clone().numel(), tensor.numel());
        }
        ++read;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), ::testing::StartsWith(damaged));
        ++failed;
      }
    }
  }
  EXPECT_GT(failed, 300);
  EXPECT_GT(read, 20);
}

}  // namespace
}  // namespace tensord::server::data_file_test
