#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>

#include "core/jit/archive/model_archive.h"
#include "core/jit/archive/pickle.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/archive/zip_writer.h"
#include "tests/jit/archive/raw_zip.h"
#include "tests/support/places.h"

namespace tensord::jit::archive_hostile_test {
namespace {

using ops::Value;
using ::testing::HasSubstr;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);  // some file systems sync to disk when a file is overwritten
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

struct Failure {
  ErrorCode code;
  std::string text;
};

// The failure, which must be an Error; other exceptions propagate and fail the test.
std::optional<Failure> failure_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return Failure{error.code(), error.what()};
  }
  return std::nullopt;
}

class HostileFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/archive_hostile_test." + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  // Gives every class the attributes of a Linear, because the small model has one.
  static void load_model(const std::string& path) {
    const ops::TypeResolver find_type = [](const std::string& name) -> ops::TypePtr {
      auto type = std::make_shared<ops::ClassType>(name, true);
      const bool is_root = name == "__torch__.Mlp";
      type->add_attribute(is_root ? "hidden" : "weight", is_root ? ops::any_type() : ops::tensor_type());
      return type;
    };
    const ModelArchive archive = ModelArchive::open(path);
    archive.sources();
    archive.constants(find_type);
    archive.object({find_type, nullptr, nullptr});
  }

  std::string folder_;
};

TEST_F(HostileFileTest, TruncatedArchivesAreRefused) {
  const std::string data = std::string(tests_folder()) + "/jit/data/";
  for (const char* name : {"mlp.pt", "mlp_torch2.pt", "values.pt", "values_torch2.pt"}) {
    const std::string bytes = read_file(data + name);
    const bool is_model = std::string(name).starts_with("mlp");
    ASSERT_GT(bytes.size(), 1000u);
    for (size_t size = 0; size < bytes.size(); size += size + 97 < bytes.size() ? 97 : 1) {
      write_file(path("cut.pt"), bytes.substr(0, size));
      const auto failure =
          failure_of([&] { is_model ? load_model(path("cut.pt")) : void(load_torch_file(path("cut.pt"))); });
      ASSERT_TRUE(failure) << name << " cut to " << size << " bytes";
      EXPECT_EQ(failure->code, ErrorCode::kDataLoss) << failure->text;
    }
  }
}

// A changed byte in data that the loader uses must be detected; in padding, dates or debug entries it need not be.
TEST_F(HostileFileTest, EveryFlippedByteIsRefusedOrHarmless) {
  const std::string data = std::string(tests_folder()) + "/jit/data/";
  for (const char* name : {"mlp.pt", "values.pt", "mlp_torch2.pt"}) {
    const std::string bytes = read_file(data + name);
    const bool is_model = std::string(name).starts_with("mlp");
    size_t refused = 0;
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string altered = bytes;
      altered[at] = static_cast<char>(altered[at] ^ (1 << at % 8));
      write_file(path("flip.pt"), altered);
      refused += failure_of([&] {
                   is_model ? load_model(path("flip.pt")) : void(load_torch_file(path("flip.pt")));
                 }).has_value();
    }
    EXPECT_GT(refused, bytes.size() / 4) << name;
    const auto zip = ZipArchive::open(data + name);
    for (const char* entry_name : {"data.pkl", "data/0"}) {
      const ZipArchive::Entry& entry = zip->at(entry_name);
      for (uint64_t at = entry.offset; at < entry.offset + entry.size; ++at) {
        std::string altered = bytes;
        altered[at] = static_cast<char>(~altered[at]);
        write_file(path("flip.pt"), altered);
        const auto failure =
            failure_of([&] { is_model ? load_model(path("flip.pt")) : void(load_torch_file(path("flip.pt"))); });
        ASSERT_TRUE(failure) << name << " with byte " << at << " of " << entry_name << " changed";
        EXPECT_EQ(failure->code, ErrorCode::kDataLoss) << failure->text;
      }
    }
  }
}

TEST_F(HostileFileTest, ZipBombsAreRefused) {
  const std::string zeros(64 << 20, '\0');
  const RawEntry bomb{"a/data.pkl", deflated(zeros), crc_of(zeros), static_cast<uint32_t>(zeros.size()), Z_DEFLATED};
  write_file(path("bomb.pt"), raw_zip({bomb}));
  auto failure = failure_of([&] { load_torch_file(path("bomb.pt")); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::kResourceExhausted) << failure->text;

  RawEntry liar = bomb;  // claims to be small, but continues
  liar.size = 1000;
  write_file(path("liar.pt"), raw_zip({liar}));
  failure = failure_of([&] { load_torch_file(path("liar.pt")); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::kDataLoss) << failure->text;

  std::vector<RawEntry> many;
  const std::string chunk(4 << 20, '\0');
  for (int i = 0; i < 100; ++i) {
    many.push_back(
        {"a/" + std::to_string(i), deflated(chunk), crc_of(chunk), static_cast<uint32_t>(chunk.size()), Z_DEFLATED});
  }
  write_file(path("many.pt"), raw_zip(many));
  failure = failure_of([&] { load_torch_file(path("many.pt")); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::kResourceExhausted) << failure->text;
}

TEST_F(HostileFileTest, DirectoriesThatLieAreRefused) {
  const std::string text = "\x80\x02N.";
  const RawEntry good{"a/data.pkl", text, crc_of(text), static_cast<uint32_t>(text.size()), 0};
  write_file(path("x.pt"), raw_zip({good}));
  EXPECT_TRUE(load_torch_file(path("x.pt")).is_none());
  const auto code_of = [&](const std::string& bytes) {
    write_file(path("x.pt"), bytes);
    const auto failure = failure_of([&] { load_torch_file(path("x.pt")); });
    return failure ? failure->code : ErrorCode::kInternal;
  };
  RawEntry longer = good;
  longer.size = 0x7fffffff;
  EXPECT_EQ(code_of(raw_zip({longer})), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of(raw_zip({good, good})), ErrorCode::kDataLoss) << "one name twice";
  EXPECT_EQ(code_of(raw_zip({good}, 1 << 20)), ErrorCode::kDataLoss) << "offset outside of the file";
  RawEntry other = good;
  other.name = "a/other.pkl";
  other.name.resize(good.name.size());
  std::string shared = raw_zip({good, other});
  EXPECT_EQ(code_of(shared), ErrorCode::kInternal) << "no failure";
  const size_t second = shared.rfind("PK\1\2");
  shared.replace(second + 42, 4, std::string(4, '\0'));
  write_file(path("x.pt"), shared);
  const auto overlap = failure_of([&] { load_torch_file(path("x.pt")); });
  ASSERT_TRUE(overlap);
  EXPECT_NE(overlap->text.find("entries overlap"), std::string::npos) << overlap->text;
  RawEntry crypted = good;
  crypted.method = 99;
  EXPECT_NE(code_of(raw_zip({crypted})), ErrorCode::kInternal);
  RawEntry wrong = good;
  wrong.crc ^= 1;
  EXPECT_EQ(code_of(raw_zip({wrong})), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of("no zip at all"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of(""), ErrorCode::kDataLoss);
}

TEST_F(HostileFileTest, OtherVersionsAndByteOrdersAreRefused) {
  const auto failure = [&](const std::string& version, const std::string& order) {
    ZipWriter writer(path("v.pt"));
    writer.add("m/data.pkl", "\x80\x02N.");
    writer.add("m/code/__torch__.py", "");
    writer.add("m/version", version);
    writer.add("m/byteorder", order);
    writer.finish();
    return failure_of([&] { ModelArchive::open(path("v.pt")); });
  };
  EXPECT_FALSE(failure("3\n", "little"));
  EXPECT_FALSE(failure("10", "little"));
  EXPECT_EQ(failure("3\n", "big")->code, ErrorCode::kUnimplemented);
  EXPECT_EQ(failure("11\n", "little")->code, ErrorCode::kUnimplemented);
  for (const char* version : {"", "x", "-1", "0", "3 4", "99999999999999999999"}) {
    EXPECT_EQ(failure(version, "little")->code, ErrorCode::kDataLoss) << version;
  }
}

// --- pickles

class HostilePickleTest : public ::testing::Test {
 protected:
  Value load(const std::string& body) {
    UnpickleContext context;
    context.source = "test";
    context.infer_container_types = true;
    context.storage = [](const std::string& key) {
      if (key != "0") fail(ErrorCode::kDataLoss, "no storage ", key);
      return allocate_storage(48, {});
    };
    return unpickle("\x80\x02" + body + ".", context).value;
  }
  Failure failure(const std::string& body) {
    return failure_of([&] { load(body); }).value_or(Failure{ErrorCode::kInternal, "no error"});
  }
  static std::string int4(uint32_t number) {
    std::string out;
    append_number(&out, number, 4);
    return out;
  }
  static std::string text(const std::string& value) { return "X" + int4(static_cast<uint32_t>(value.size())) + value; }
  static std::string tensor(const std::string& count, const std::string& offset, const std::string& sizes,
                            const std::string& strides, const std::string& type = "FloatStorage") {
    return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\n" + type + "\n" + text("0") +
           text("cpu") + count + "tQ" + offset + sizes + strides + "\x89" + "ccollections\nOrderedDict\n)RtR";
  }
};

TEST_F(HostilePickleTest, ForeignNamesAreRefused) {
  for (const char* name : {"os\nsystem", "builtins\neval", "__builtin__\ngetattr", "torch\nload", "posix\nsystem",
                           "torch.jit._script\nScriptModule", "__torch__\nM"}) {
    const Failure got = failure(std::string("c") + name + "\n" + text("true") + "\x85R");
    EXPECT_EQ(got.code, ErrorCode::kUnimplemented) << got.text;
    std::string dotted = name;
    dotted.replace(dotted.find('\n'), 1, ".");
    EXPECT_THAT(got.text, HasSubstr("class '" + dotted + "' is not allowed"));
  }
  EXPECT_THAT(failure("ctorch._utils\n_rebuild_qtensor\n)R").text, HasSubstr("quantized"));
  EXPECT_THAT(failure("ctorch\nQInt8Storage\n").text, HasSubstr("quantized"));
  EXPECT_THAT(failure("ctorch\nQUInt2x4Storage\n").text, HasSubstr("quint2x4"));
}

TEST_F(HostilePickleTest, OpcodesOutsideOfTheListAreRefused) {
  const std::string known = "\x80N\x88\x89KMJ\x8aGX(qrhjc]})t\x85\x86\x87laesudQ\x81Rb.";
  for (int opcode = 0; opcode < 256; ++opcode) {
    if (known.find(static_cast<char>(opcode)) != std::string::npos) continue;
    const Failure got = failure(std::string("N") + static_cast<char>(opcode));
    EXPECT_EQ(got.code, ErrorCode::kDataLoss) << opcode << got.text;
    EXPECT_THAT(got.text, HasSubstr("opcode"));
  }
}

TEST_F(HostilePickleTest, TensorsMustLieInTheirStorage) {
  EXPECT_EQ(load(tensor("K\x0c", std::string("K\0", 2), "K\3K\4\x86", "K\4K\1\x86")).to_tensor().numel(), 12);
  const std::string zero("K\0", 2), huge = "\x8a\x08" + std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
  const std::string bad[] = {
      tensor("K\x0d", zero, "K\1\x85", "K\1\x85"),  // more elements than bytes
      tensor(huge, zero, "K\1\x85", "K\1\x85"),
      tensor("J\xff\xff\xff\xff", zero, "K\1\x85", "K\1\x85"),
      tensor("K\x0c", "K\x0c", "K\1\x85", "K\1\x85"),  // offset
      tensor("K\x0c", "J\xff\xff\xff\xff", "K\1\x85", "K\1\x85"),
      tensor("K\x0c", huge, "K\1\x85", "K\1\x85"),
      tensor("K\x0c", zero, "K\x0d\x85", "K\1\x85"),  // sizes
      tensor("K\x0c", zero, huge + huge + "\x86", "K\1K\1\x86"),
      tensor("K\x0c", zero, "J\xff\xff\xff\xff\x85", "K\1\x85"),
      tensor("K\x0c", zero, "K\2\x85", huge + "\x85"),  // strides
      tensor("K\x0c", zero, "K\2\x85", "J\xff\xff\xff\xff\x85"),
      tensor("K\x0c", zero, "K\2\x85", "K\1K\1\x86"),
      tensor("K\x0c", zero, "K\4\x85", "K\1\x85", "Nonsense"),
  };
  for (const std::string& body : bad) {
    const Failure got = failure(body);
    EXPECT_TRUE(got.code == ErrorCode::kDataLoss || got.code == ErrorCode::kUnimplemented) << got.text;
  }
}

TEST_F(HostilePickleTest, NestingIsBoundedWithoutRecursion) {
  for (const std::string& level : {std::string("\x85"), std::string("(]")}) {
    std::string deep = level == "\x85" ? ")" : "";
    for (int i = 0; i < 300000; ++i) deep += level;
    if (level == "(]") {
      deep = "]" + deep;
      for (int i = 0; i < 300000; ++i) deep += "e";
    }
    EXPECT_EQ(failure(deep).code, ErrorCode::kResourceExhausted) << failure(deep).text;
    EXPECT_EQ(failure(deep + "\xff").code, ErrorCode::kDataLoss) << "taken apart half-way";
  }
  // Lists nested through the memo, outermost first.
  std::string chain;
  const int count = 200000;
  for (int i = 0; i < count; ++i) chain += "]r" + int4(static_cast<uint32_t>(i));
  chain = "(" + chain + "t";
  std::string links;
  for (int i = 0; i + 1 < count; ++i)
    links += "j" + int4(static_cast<uint32_t>(i)) + "j" + int4(static_cast<uint32_t>(i + 1)) + "a";
  EXPECT_EQ(failure(chain + "(" + links + "t\x86").code, ErrorCode::kResourceExhausted);
}

TEST_F(HostilePickleTest, ValuesThatContainThemselvesAreRefused) {
  EXPECT_THAT(failure("]q" + std::string(1, '\0') + "h" + std::string(1, '\0') + "a").text,
              HasSubstr("contains itself"));
  EXPECT_THAT(failure("}q" + std::string(1, '\0') + "K\1h" + std::string(1, '\0') + "s").text,
              HasSubstr("contains itself"));
  EXPECT_THAT(failure("(]q\1)h\1\x86q\2h\1h\2at").text, HasSubstr("contains itself"));
}

TEST_F(HostilePickleTest, SharingThatExplodesIsRefused) {
  std::string laughs = ")q" + std::string(1, '\0');
  for (char i = 0; i < 60; ++i) laughs += std::string("h") + i + "h" + i + "\x86q" + static_cast<char>(i + 1);
  const Failure got = failure("(" + laughs + "t");
  EXPECT_EQ(got.code, ErrorCode::kResourceExhausted) << got.text;
}

TEST_F(HostilePickleTest, MemoAndLengthsAreBounded) {
  EXPECT_EQ(failure("Nr\xff\xff\xff\x7f").code, ErrorCode::kDataLoss);
  EXPECT_EQ(failure("j\xff\xff\xff\xff").code, ErrorCode::kDataLoss);
  EXPECT_EQ(failure("h\5").code, ErrorCode::kDataLoss);
  EXPECT_EQ(failure("X" + int4(0x7fffffff) + "abc").code, ErrorCode::kDataLoss);
  EXPECT_EQ(failure("X" + int4(0xffffffff) + "abc").code, ErrorCode::kDataLoss);
  EXPECT_EQ(failure("\x8a\xff").code, ErrorCode::kDataLoss);
  EXPECT_EQ(failure("\x8a\x0a" + std::string(9, '\0') + "\1").code, ErrorCode::kUnimplemented);
  // 2 ** 63 and -2 ** 63 - 1 need a ninth byte, which in smaller numbers only repeats the sign.
  EXPECT_EQ(failure("\x8a\x09" + std::string(7, '\0') + "\x80" + std::string(1, '\0')).code, ErrorCode::kUnimplemented);
  EXPECT_EQ(failure("\x8a\x09" + std::string(7, '\xff') + "\x7f\xff").code, ErrorCode::kUnimplemented);
  EXPECT_EQ(failure("c" + std::string(5000, 'a')).code, ErrorCode::kDataLoss);
  EXPECT_EQ(failure(std::string(8 << 20, ']')).code, ErrorCode::kResourceExhausted) << "64 bytes for each byte";
  EXPECT_EQ(failure("").code, ErrorCode::kDataLoss);
}

TEST_F(HostilePickleTest, MalformedStacksAreRefused) {
  for (const char* body :
       {"t",
        "e",
        "u",
        "a",
        "s",
        "b",
        "R",
        "Q",
        "\x81",
        "\x85",
        "q\1",
        "(",
        "(K\1",
        "NN",
        "Na",
        "NNs",
        "}(K\1u",
        "}(]K\1u",
        "}]K\1s",
        "NNb",
        ")N\x81",
        "N)R",
        "K\1Q",
        "(te",
        "]e",
        "ctorch\nFloatStorage\n",
        "ctorch\nFloatStorage\n\x85",
        "]ctorch\nFloatStorage\na",
        "ctorch\nFloatStorage\n)R",
        "ctorch._utils\n_rebuild_tensor_v2\n)R",
        "ctorch._tensor\n_rebuild_from_type_v2\n)R",
        "ctorch._tensor\n_rebuild_from_type_v2\n(NNN}tR",
        "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nFloatStorage\nctorch\nTensor\n)}tR",
        "ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\nset\nctorch\nTensor\n(]t}tR",
        "ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\nset\nctorch\ndevice\n(]t}tR",
        "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n_rebuild_from_type_v2\nctorch\nTensor\n"
        "(NNNNt}tR",
        "cbuiltins\nset\n)R",
        "cbuiltins\nset\nN\x85R",
        "ctorch.jit._pickle\nbuild_intlist\n)R",
        "ctorch.jit._pickle\nbuild_intlist\nN\x85R",
        "ctorch.jit._pickle\nrestore_type_tag\n]K\1\x86R",
        "ctorch.jit._pickle\nbuild_intlist\n](G\0\0\0\0\0\0\0\0e\x85R"}) {
    EXPECT_TRUE(failure_of([&] { load(body); })) << body;
  }
  const std::string tagged = "ctorch.jit._pickle\nrestore_type_tag\n]";
  EXPECT_TRUE(failure_of([&] { load(tagged + text("List[os.system]") + "\x86R"); }));
  EXPECT_TRUE(failure_of([&] { load(tagged + text("Dict[str, int]") + "\x86R"); }));
  std::string nested;
  for (int i = 0; i < 100000; ++i) nested += "List[";
  EXPECT_TRUE(failure_of([&] { load(tagged + text(nested) + "\x86R"); }));
}

// Random changes to a real pickle give a value or an Error.
TEST_F(HostilePickleTest, RandomChanges) {
  const auto zip = ZipArchive::open(std::string(tests_folder()) + "/jit/data/values.pt");
  const std::string good = zip->read(zip->at("data.pkl"));
  UnpickleContext context;
  context.source = "test";
  context.storage = [](const std::string&) { return allocate_storage(48, {}); };
  uint32_t random = 1;
  const auto next = [&](size_t limit) {
    random = random * 1664525 + 1013904223;
    return (random >> 8) % limit;
  };
  int loaded = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string altered = good;
    for (size_t changes = 1 + next(4); changes-- > 0;) altered[next(altered.size())] = static_cast<char>(next(256));
    if (next(4) == 0) altered.erase(next(altered.size()), next(8));
    loaded += !failure_of([&] { unpickle(altered, context); });
  }
  EXPECT_GT(loaded, 100);
  EXPECT_LT(loaded, 19000);
}

}  // namespace
}  // namespace tensord::jit::archive_hostile_test
