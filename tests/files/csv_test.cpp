// The CSV reader that returns some rows at a time.
#include "core/files/csv.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/files/table.h"

namespace tensord::files::csv_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Csv : public ::testing::Test {
 public:
  void TearDown() override { fs::remove(path_); }
  const std::string& write(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    return path_;
  }
  // Without the path prefix, which must be there.
  template <class Fn>
  std::string message_of(Fn&& fn) {
    try {
      fn();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StartsWith(path_ + ": "));
      return std::string(error.what()).substr(path_.size() + 2);
    }
    return "no error";
  }
  std::string error_of(const std::string& text, const CsvOptions& options = {}) {
    write(text);
    return message_of([&] {
      CsvReader reader(path_, options);
      while (reader.next(2)) {
      }
    });
  }
  const std::string path_ = fs::temp_directory_path() / concat("csv_test_", getpid(), ".csv");
};

template <class T>
std::vector<T> values(const Tensor& tensor) {
  return std::vector<T>(tensor.data<T>(), tensor.data<T>() + tensor.numel());
}

TEST_F(Csv, RowsInPieces) {
  CsvReader reader(write("a,b\n1,2\n\n3,4.5\n 5 , 6\n7,8\n9,10"));
  EXPECT_THAT(reader.columns(), ElementsAre("a", "b"));
  std::vector<double> a, b;
  std::vector<int64_t> rows;
  while (const auto columns = reader.next(2)) {
    rows.push_back((*columns)[0].size(0));
    for (const double x : values<double>((*columns)[0])) a.push_back(x);
    for (const double x : values<double>((*columns)[1])) b.push_back(x);
  }
  EXPECT_THAT(rows, ElementsAre(2, 2, 1));
  EXPECT_THAT(a, ElementsAre(1, 3, 5, 7, 9));
  EXPECT_THAT(b, ElementsAre(2, 4.5, 6, 8, 10));
  EXPECT_FALSE(reader.next(2));
  // Memory depends on the available rows, not on the requested number.
  EXPECT_EQ(CsvReader(path_).next(int64_t{1} << 60)->at(0).size(0), 5);
}

TEST_F(Csv, QuotedFieldsHoldSeparatorsAndLines) {
  const std::string text = "name;\"the \"\"size\"\"\"\r\n\"x;\n\"\"y\"\"\" ; \"2\"\r\nz;3\n";
  CsvReader reader(write(text), {.delimiter = ';', .classes = {{"name", {"z", "x;\n\"y\""}}}});
  EXPECT_THAT(reader.columns(), ElementsAre("name", "the \"size\""));
  const auto columns = *reader.next(10);
  EXPECT_THAT(values<int64_t>(columns[0]), ElementsAre(1, 0));
  EXPECT_THAT(values<double>(columns[1]), ElementsAre(2, 3));
  // The other reader returns the same rows for the whole file; quoted newlines count as lines.
  const CsvOptions options{.classes = {{"a", {"1", "\n3\n"}}}};
  EXPECT_EQ(error_of("a,b\n\"1\",\"2\"\n\"\n3\n\",4\n1,x\n", options), "line 6: column 'b': 'x' is not a number");
}

TEST_F(Csv, ColumnsAndTypes) {
  const CsvOptions options{
      .columns = {"c", "a", "d"},
      .dtypes = {{"a", DType::kInt8}, {"c", DType::kFloat16}, {"d", DType::kBool}, {"b", DType::kFloat32}}};
  CsvReader reader(write("a,b,c,d\n-128,text,1.5,true\n127,,inf,0\n"), options);
  EXPECT_THAT(reader.columns(), ElementsAre("c", "a", "d"));
  const auto columns = *reader.next(10);
  EXPECT_EQ(columns[0].dtype(), DType::kFloat16);
  EXPECT_EQ(columns[0].to(DType::kFloat64).data<double>()[0], 1.5);
  EXPECT_TRUE(std::isinf(columns[0].to(DType::kFloat64).data<double>()[1]));
  EXPECT_THAT(values<int8_t>(columns[1]), ElementsAre(-128, 127));
  EXPECT_THAT(values<bool>(columns[2]), ElementsAre(true, false));
  CsvReader bare(write("1,2\n3,4\n"), {.has_header = false});
  EXPECT_THAT(bare.columns(), ElementsAre("0", "1"));
  EXPECT_THAT(values<double>(bare.next(5)->at(1)), ElementsAre(2, 4));
  CsvReader tabs(write("a\tb\n1\t\t\n"), {.delimiter = '\t'});
  EXPECT_THAT(message_of([&] { tabs.next(1); }), "line 2: has 3 fields, the header has 2");
}

TEST_F(Csv, ErrorsNameLineAndColumn) {
  EXPECT_EQ(error_of("a,b\n1,2\n3\n"), "line 3: has 1 fields, the header has 2");
  EXPECT_EQ(error_of("a,b\n1,2,\n"), "line 2: has 3 fields, the header has 2");
  EXPECT_EQ(error_of("a,b\n1,"), "line 2: column 'b': the field is empty");
  EXPECT_EQ(error_of("a\n300\n", {.dtypes = {{"a", DType::kUInt8}}}),
            "line 2: column 'a': '300' is out of range of uint8");
  EXPECT_EQ(error_of("a\n-1\n", {.dtypes = {{"a", DType::kUInt8}}}),
            "line 2: column 'a': '-1' is out of range of uint8");
  EXPECT_EQ(error_of("a\n1e39\n", {.dtypes = {{"a", DType::kFloat32}}}),
            "line 2: column 'a': '1e39' is out of range of float32");
  EXPECT_EQ(error_of("a\n1.5\n", {.dtypes = {{"a", DType::kInt64}}}),
            "line 2: column 'a': '1.5' is not a 64-bit integer");
  EXPECT_EQ(error_of("a\nyes\n", {.dtypes = {{"a", DType::kBool}}}), "line 2: column 'a': 'yes' is not a bool");
  EXPECT_EQ(error_of("a\nz\n", {.classes = {{"a", {"x", "y"}}}}), "line 2: column 'a': 'z' is not one of the classes");
  EXPECT_EQ(error_of("a\n1\n", {.columns = {"b"}}), "has no column 'b'");
  EXPECT_EQ(error_of("a\n1\n", {.dtypes = {{"b", DType::kInt64}}}), "has no column 'b'");
  EXPECT_THAT(error_of("a\n1\n", {.dtypes = {{"a", DType::kInt64}}, .classes = {{"a", {}}}}),
              HasSubstr("both classes and a dtype"));
  EXPECT_THAT(error_of("a\n1\n", {.delimiter = '"'}), HasSubstr("the delimiter must not be a quote"));
  EXPECT_EQ(error_of("a,b\n1,\"2"), "line 2: a quoted field does not end where it should");
  EXPECT_EQ(error_of(std::string(100000, ',')), "line 1: more than 65536 columns");
}

TEST_F(Csv, AnyBytesAreReadOrRefused) {
  std::mt19937 random(9);
  const std::string letters = "1,\"\n\r\t .-x\xef";
  int read = 0;
  for (int i = 0; i < 600; ++i) {
    std::string text = "a,b\n";
    for (unsigned k = random() % 30; k > 0; --k) text += letters[random() % letters.size()];
    read += error_of(text) == "no error";
  }
  EXPECT_GT(read, 10);
}

}  // namespace
}  // namespace tensord::files::csv_test
