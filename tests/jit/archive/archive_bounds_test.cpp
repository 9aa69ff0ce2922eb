// Pickles and zip files that break one rule each, with the expected error; limits at their last value and one beyond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/jit/archive/model_archive.h"
#include "core/jit/archive/pickle.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/archive/zip_writer.h"
#include "core/tensor/memory/owner_limit.h"

namespace tensord::jit::archive_bounds_test {
namespace {

using ops::Value;
using ::testing::HasSubstr;

void append_number(std::string& out, uint64_t number, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}
std::string int4(uint32_t number) {
  std::string out;
  append_number(out, number, 4);
  return out;
}
std::string text(const std::string& value) { return "X" + int4(static_cast<uint32_t>(value.size())) + value; }

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return concat(to_string(error.code()), " ", error.what());
  }
  return "none";
}

UnpickleContext context() {
  UnpickleContext out;
  out.source = "test";
  out.storage = [](const std::string&) { return allocate_storage(48, {}); };
  return out;
}
Value load(const std::string& body) { return unpickle("\x80\x02" + body + ".", context()).value; }
std::string pickle_error(const std::string& body) {
  return error_of([&] { load(body); });
}

const std::string kZero("\0", 1);

// The shortest opcode for a number, as Python's own writer of protocol 2 chooses it.
TEST(PickleBounds, NumbersAtTheEndsOfEachOpcode) {
  const std::pair<int64_t, std::string> cases[] = {
      {0, "K"},
      {255, "K"},
      {256, "M"},
      {65535, "M"},
      {65536, "J"},
      {INT32_MAX, "J"},
      {-1, "J"},
      {INT32_MIN, "J"},
      {1LL << 31, "\x8a"},
      {-(1LL << 31) - 1, "\x8a"},
      {INT64_MAX, "\x8a"},
      {INT64_MIN, "\x8a"},
  };
  for (const auto& [number, opcode] : cases) {
    std::vector<PickledStorage> storages;
    const std::string text = pickle(Value(number), &storages);
    EXPECT_EQ(text.substr(2, 1), opcode) << number;
    EXPECT_EQ(unpickle(text, context()).value.to_int(), number);
  }
}

TEST(PickleBounds, WhatIsMetAgainIsReferredToAlsoBeyondAByteOfMemo) {
  std::vector<Value> items;
  for (int64_t i = 0; i < 300; ++i) items.push_back(ops::make_tuple({Value(i)}));
  for (int64_t i = 0; i < 300; ++i) items.push_back(items[static_cast<size_t>(i)]);
  std::vector<PickledStorage> storages;
  const std::string text = pickle(ops::make_tuple(items), &storages);
  EXPECT_EQ(text.find("j" + int4(255)), std::string::npos);
  const Value back = unpickle(text, context()).value;
  ASSERT_EQ(back.to_tuple()->items.size(), 600u);
  for (size_t i = 0; i < 300; ++i) {
    const Value &first = back.to_tuple()->items[i], &again = back.to_tuple()->items[300 + i];
    EXPECT_EQ(first.to_tuple()->items[0].to_int(), static_cast<int64_t>(i));
    EXPECT_EQ(again.to_tuple().get(), first.to_tuple().get()) << i;
  }
}

TEST(PickleBounds, EachRuleIsSaid) {
  const std::string storage = "ctorch\nFloatStorage\n", rebuild = "ctorch._utils\n_rebuild_tensor_v2\n";
  const std::string reference = "(" + text("storage") + storage + text("0") + text("cpu") + "K\x0c" + "tQ";
  const std::string one = "K\1\x85", none = "K" + kZero;
  const std::string complex = "cbuiltins\ncomplex\n";
  const std::pair<std::string, const char*> wrong[] = {
      {"t", "there is no mark"},
      {"e", "there is no mark"},
      {"NNa", "append to something that is not a list"},
      {"a", "the stack is empty"},
      {"(a", "the stack is empty"},
      {"\x85", "the stack is empty"},
      {"q\1", "the stack is empty"},
      {"(", "the stack is empty"},
      {"(K\1", "values are left at the end"},
      {"NN", "values are left at the end"},
      {"NNNs", "items for something that is not a dict"},
      {"}(K\1u", "a key has no value"},
      {"}]K\1s", "a dict key of type"},
      {"NNb", "a state for something that is not an object"},
      {")N\x81", "a new object of something that is not a class"},
      {"N)R", "a call of something that is not a function"},
      {storage + ")R", "a call of something that is not a function"},
      {rebuild + "NR", "the arguments of a call are not a tuple"},
      {"K\1Q", "a storage reference has the wrong form"},
      {"(" + text("storage") + storage + text("0") + text("cpu") + "tQ", "a storage reference has the wrong form"},
      {"(" + text("other") + storage + text("0") + text("cpu") + "K\x0ctQ", "a storage reference has the wrong form"},
      {"(" + text("storage") + rebuild + text("0") + text("cpu") + "K\x0ctQ", "a storage reference has the wrong form"},
      {"(" + text("storage") + storage + "K\1" + text("cpu") + "K\x0ctQ", "a storage reference has the wrong form"},
      {"(" + text("storage") + storage + text("0") + "K\1K\x0ctQ", "a storage reference has the wrong form"},
      {"(" + text("storage") + storage + text("0") + text("cpu") + "NtQ", "a storage reference has the wrong form"},
      {"(" + text("storage") + storage + text("0") + text("cpu") + "K\x0dtQ", "should hold 13 elements of float32"},
      {"(" + text("storage") + storage + text("0") + text("cpu") + "J\xff\xff\xff\xfftQ", "should hold -1 elements"},
      {storage, "as a value is not supported"},
      {"]" + storage + "a", "as a value is not supported"},
      {"](" + storage + "e", "as a value is not supported"},
      {"}" + storage + "Ns", "as a value is not supported"},
      {"}N" + storage + "s", "as a value is not supported"},
      {"}" + storage + "b", "as a value is not supported"},
      {rebuild + ")R", "too few arguments for torch._utils._rebuild_tensor_v2"},
      {rebuild + "(" + reference + none + one + "tR", "too few arguments for torch._utils._rebuild_tensor_v2"},
      {rebuild + "(N" + none + one + one + "tR", "a tensor has no storage"},
      {rebuild + "(" + reference + "N" + one + one + "tR", "a tensor has no storage"},
      {rebuild + "(" + reference + none + "N" + one + "tR", "a tensor has bad sizes"},
      {rebuild + "(" + reference + none + "N\x85" + one + "tR", "a tensor has bad sizes"},
      {rebuild + "(" + reference + none + one + "N" + "tR", "a tensor has bad strides"},
      {"ctorch._utils\n_rebuild_parameter\n(NtR", "a parameter has no tensor"},
      {"ctorch.jit._pickle\nrestore_type_tag\n(]K\1tR", "a type tag is not a string"},
      {"ccollections\nOrderedDict\n(K\1tR", "arguments for collections.OrderedDict"},
      {"ctorch\ndevice\n(K\1tR", "a device has no name"},
      {"ctorch\nSize\n(K\1tR", "a tensor has bad sizes"},
      {complex + "(K\1NtR", "a complex number has no two parts"},
      {complex + "(NK\1tR", "a complex number has no two parts"},
      {"ctorch.jit._pickle\nbuild_intlist\n(NtR", "expected a value of type List[int] but got"},
      {"c" + std::string(1025, 'a') + "\nb\n", "a name does not end"},
      {"h\1", "a memo entry does not exist"},
      {"Nq\2h\1", "a memo entry does not exist"},
      {"X" + int4(3) + "ab", "it is truncated"},
      {"\x80\3", "pickle protocol 3 is not supported, only 2"},
  };
  for (const auto& [body, message] : wrong) {
    EXPECT_THAT(pickle_error(body), HasSubstr(message)) << body;
    EXPECT_THAT(pickle_error(body), HasSubstr("test")) << body;
  }
  EXPECT_THAT(error_of([] { unpickle("N.", context()); }), HasSubstr("it does not start with a protocol number"));
  const std::string tensor = rebuild + "(" + reference + none + "K\3K\4\x86" + "K\4K\1\x86" + "tR";
  EXPECT_EQ(load(tensor).to_tensor().numel(), 12);
  EXPECT_EQ(load(complex + "(K\1K\2tR").to_complex(), std::complex<double>(1, 2));
}

// Copying or packing a tensor allocates its full size, however few bytes of the file it refers to.
TEST(PickleBounds, ViewsOfMoreThanThereIsRoomFor) {
  const std::string storage = "ctorch\nFloatStorage\n", rebuild = "ctorch._utils\n_rebuild_tensor_v2\n";
  const auto tensor = [&](uint32_t size, const std::string& stride) {
    const std::string reference = "(" + text("storage") + storage + text("0") + text("cpu") + "K\x0c" + "tQ";
    return rebuild + "(" + reference + "K" + kZero + "J" + int4(size) + "\x85" + "K" + stride + "\x85" + "tR";
  };
  const OwnerId owner = memory_owner("views");
  const MemoryOwnerScope scope(owner);
  set_owner_limit(owner, 4 << 20);
  EXPECT_EQ(pickle_error(tensor(1 << 19, kZero)), "none");
  EXPECT_THAT(pickle_error(tensor(1 << 30, kZero)), HasSubstr("test: asks for 4294967248 bytes of memory"));
  std::string many = "](", whole = "](";
  for (int i = 0; i < 4; ++i) many += tensor(1 << 19, kZero);
  for (int i = 0; i < 1000; ++i) whole += tensor(12, "\1");
  EXPECT_THAT(pickle_error(many + "e"), HasSubstr("RESOURCE_EXHAUSTED test: asks for"));
  EXPECT_EQ(pickle_error(whole + "e"), "none");
  set_owner_limit(owner, 0);
}

TEST(PickleBounds, BytesThatAreNoBools) {
  const auto error = [](int byte) {
    UnpickleContext given = context();
    given.storage = [=](const std::string&) {
      Storage storage = allocate_storage(4, {});
      std::memset(storage->data(), byte, 4);
      return storage;
    };
    const std::string body = "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nBoolStorage\n" +
                             text("0") + text("cpu") + "K\4tQK" + kZero + "K\4\x85K\1\x85\x89)tR";
    return error_of([&] { unpickle("\x80\x02" + body + ".", given); });
  };
  EXPECT_EQ(error(0), "none");
  EXPECT_EQ(error(1), "none");
  EXPECT_THAT(error(2), HasSubstr("a bool is neither 0 nor 1"));
}

TEST(PickleBounds, QuantisedTensors) {
  const auto error = [](const std::string& body) {
    UnpickleContext given = context();
    given.storage = [](const std::string&) {
      Storage storage = allocate_storage(48, {});
      std::memset(storage->data(), 0, 48);
      return storage;
    };
    given.find_type = [](const std::string&) { return ops::TypePtr(); };
    return error_of([&] { unpickle("\x80\x02" + body + ".", given); });
  };
  const std::string half("G\x3f\xe0" + std::string(6, '\0')), none = "K" + kZero;
  const auto storage = [](const std::string& type, const char* count = "K\x0c") {
    return "(" + text("storage") + "ctorch\n" + type + "\n" + text("0") + text("cpu") + count + "tQ";
  };
  const std::string affine = "ctorch\nper_tensor_affine\n", channels = "ctorch\nper_channel_affine\n";
  const std::string two = "K\2\x85", one = "K\1\x85";
  const auto rebuilt = [&](const std::string& reference, const std::string& offset, const std::string& sizes,
                           const std::string& strides, const std::string& quantizer) {
    return "ctorch._utils\n_rebuild_qtensor\n(" + reference + offset + sizes + strides + quantizer + "\x89)tR";
  };
  const std::string q8 = storage("QInt8Storage"), good = "(" + affine + half + none + "t";
  const auto with = [&](const std::string& quantizer) { return error(rebuilt(q8, none, two, one, quantizer)); };
  EXPECT_EQ(with(good), "none");
  const char* const kForm = "a quantizer has the wrong form";
  const char* const kScale = "a quantizer has no scale and zero point";
  const char* const kScales = "a quantizer has no scales, zero points and axis";
  EXPECT_THAT(with("N"), HasSubstr(kForm));
  EXPECT_THAT(with("(" + affine + half + "t"), HasSubstr(kForm));
  EXPECT_THAT(with("(" + half + half + none + "t"), HasSubstr("a quantizer has no scheme"));
  EXPECT_THAT(with("(" + affine + none + none + "t"), HasSubstr(kScale));
  EXPECT_THAT(with("(" + affine + half + half + "t"), HasSubstr(kScale));
  EXPECT_THAT(with("(K\x4d" + half + none + "t"), HasSubstr("a quantizer has an unknown scheme"));
  const std::string numbers =
      "ctorch._utils\n_rebuild_tensor_v2\n(" + storage("DoubleStorage", "K\6") + none + two + one + "\x89)tR";
  EXPECT_THAT(with("(" + channels + numbers + numbers + "t"), HasSubstr(kScales));
  EXPECT_THAT(with("(" + channels + half + numbers + none + "t"), HasSubstr(kScales));
  EXPECT_THAT(with("(" + channels + numbers + half + none + "t"), HasSubstr(kScales));
  EXPECT_THAT(with("(" + channels + numbers + numbers + half + "t"), HasSubstr(kScales));
  const char* const kStorage = "a quantized tensor has no storage";
  EXPECT_THAT(error(rebuilt("N", none, two, one, good)), HasSubstr(kStorage));
  EXPECT_THAT(error(rebuilt(storage("FloatStorage"), none, two, one, good)), HasSubstr(kStorage));
  EXPECT_THAT(error(rebuilt(q8, half, two, one, good)), HasSubstr(kStorage));
  EXPECT_THAT(error("ctorch._utils\n_rebuild_tensor_v2\n(" + q8 + none + two + one + "\x89)tR"),
              HasSubstr("a tensor has no storage"));
  // Two numbers in a byte.
  const std::string q4 = storage("QUInt4x2Storage");
  EXPECT_THAT(error(rebuilt(q4, none, ")", ")", good)), HasSubstr("a quint4x2 tensor is not dense"));
  EXPECT_THAT(error(rebuilt(q4, "K\1", two, one, good)), HasSubstr("a quint4x2 tensor is not dense"));
  EXPECT_THAT(error(rebuilt(q4, none, two, two, good)), HasSubstr("a quint4x2 tensor is not dense"));
}

TEST(PickleBounds, LastValues) {
  // A memo index may skip up to 1024.
  EXPECT_EQ(pickle_error("Nr" + int4(1024)), "none");
  EXPECT_THAT(pickle_error("Nr" + int4(1025)), HasSubstr("a memo index is out of order"));
  EXPECT_EQ(load("K\1q" + kZero + "h" + kZero + "\x86").to_tuple()->items.size(), 2U);
  // 64-bit integers in eight bytes, and in more that only extend the sign.
  const auto number = [](const std::string& bytes) {
    return "\x8a" + std::string(1, static_cast<char>(bytes.size())) + bytes;
  };
  const std::string max = std::string(7, '\xff') + "\x7f", min = std::string(7, '\0') + "\x80";
  EXPECT_EQ(load(number(max)).to_int(), INT64_MAX);
  EXPECT_EQ(load(number(min)).to_int(), INT64_MIN);
  EXPECT_EQ(load(number(max + kZero)).to_int(), INT64_MAX);
  EXPECT_EQ(load(number(min + "\xff")).to_int(), INT64_MIN);
  EXPECT_EQ(load(number("")).to_int(), 0);
  EXPECT_EQ(load(number("\xff")).to_int(), -1);
  EXPECT_EQ(load(number(std::string("\xff\0", 2))).to_int(), 255);
  EXPECT_THAT(pickle_error(number(max + "\1")), HasSubstr("an int of more than 64 bits"));
  EXPECT_THAT(pickle_error(number(min + kZero)), HasSubstr("an int of more than 64 bits"));
  // A name has at most 1023 letters.
  EXPECT_THAT(pickle_error("c" + std::string(1023, 'a') + "\nb\n"), HasSubstr("is not allowed"));
  EXPECT_THAT(pickle_error("c" + std::string(1024, 'a') + "\nb\n"), HasSubstr("a name does not end"));
  // Values nest 1000 deep.
  const auto deep = [](size_t depth) { return ")" + std::string(depth - 1, '\x85'); };
  EXPECT_EQ(pickle_error(deep(1000)), "none");
  EXPECT_THAT(pickle_error(deep(1001)), HasSubstr("RESOURCE_EXHAUSTED test: values are nested more than 1000 deep"));
  // Class instances, and those among their arguments, nest eight deep.
  const auto raw = [](size_t depth) { return "ctorch\nFloatStorage\n" + std::string(depth, '\x85') + "R"; };
  EXPECT_THAT(pickle_error(raw(8)), HasSubstr("the stack is empty"));
  EXPECT_THAT(pickle_error(raw(9)), HasSubstr("classes are nested too deep"));
  // The pickle itself.
  UnpickleContext small = context();
  small.max_bytes = 4;
  EXPECT_TRUE(unpickle("\x80\x02N.", small).value.is_none());
  small.max_bytes = 3;
  EXPECT_THAT(error_of([&] { unpickle("\x80\x02N.", small); }), HasSubstr("a pickle of 4 bytes is larger than 3"));
}

// ---- zip files

class ZipBounds : public ::testing::Test {
 protected:
  ZipBounds() : path_(std::filesystem::path(::testing::TempDir()) / concat("zip_bounds.", getpid())) {}
  ~ZipBounds() override { std::filesystem::remove(path_); }

  void write(const std::string& bytes) const {
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  std::string open_error(const std::string& bytes, ZipOptions options = {}) const {
    write(bytes);
    return error_of([&] { ZipArchive::open(path_.string(), options); });
  }
  // Entries of a folder "m".
  std::string zip(const std::vector<std::pair<std::string, std::string>>& entries) const {
    std::filesystem::remove(path_);
    ZipWriter writer(path_.string());
    for (const auto& [name, content] : entries) writer.add("m/" + name, content);
    writer.finish();
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::filesystem::path path_;
};

// Changes bytes of an entry in the directory: offset 8 is its flags, 10 its method.
std::string changed(std::string bytes, size_t entry, size_t offset, const std::string& value) {
  size_t at = bytes.find("PK\1\2");
  for (size_t i = 0; i < entry; ++i) at = bytes.find("PK\1\2", at + 1);
  return bytes.replace(at + offset, value.size(), value);
}

TEST_F(ZipBounds, Directories) {
  const std::string good = zip({{"a", "text"}, {"b", "more"}});
  EXPECT_EQ(open_error(good), "none");
  EXPECT_THAT(open_error(""), HasSubstr(": is empty"));
  EXPECT_THAT(open_error("PK"), HasSubstr("is not a zip archive, or is truncated"));
  EXPECT_THAT(open_error(std::string("abcdPTMF", 8)), HasSubstr("is a mobile module in a FlatBuffer"));
  EXPECT_THAT(open_error(std::string("abcdPTM", 7)), HasSubstr("is not a zip archive"));
  EXPECT_THAT(open_error(std::string("abcdxTMF", 8)), HasSubstr("is not a zip archive"));
  EXPECT_THAT(open_error(changed(good, 1, 8, std::string("\1", 1))), HasSubstr("entry m/b is encrypted"));
  EXPECT_THAT(open_error(changed(good, 0, 10, "\x0c")), HasSubstr("entry m/a uses compression method 12"));
  ZipOptions options;
  options.max_entries = 2;
  EXPECT_EQ(open_error(good, options), "none");
  options.max_entries = 1;
  EXPECT_THAT(open_error(good, options), HasSubstr("claims 2 entries"));
  EXPECT_THAT(error_of([&] { ZipArchive::open((path_.string() + ".none")); }), HasSubstr("cannot be opened"));
  EXPECT_THAT(error_of([&] { ZipArchive::open(::testing::TempDir()); }), HasSubstr("is not a regular file"));
}

TEST_F(ZipBounds, Entries) {
  write(zip({{"a", "text"}, {"empty", ""}, {"inner", "no zip"}}));
  ZipOptions options;
  options.max_inflated_bytes = 4;
  const auto archive = ZipArchive::open(path_.string(), options);
  EXPECT_EQ(archive->read(archive->at("a")), "text");
  EXPECT_EQ(archive->read(archive->at("empty")), "");
  EXPECT_THAT(error_of([&] { archive->read(archive->at("inner")); }),
              HasSubstr("entry inner has 6 bytes, more than 4"));
  EXPECT_THAT(error_of([&] { archive->at("other"); }), HasSubstr("has no entry other"));
  EXPECT_THAT(error_of([&] { archive->open_inner(archive->at("empty")); }), HasSubstr(": empty: is empty"));
  EXPECT_THAT(error_of([&] { archive->open_inner(archive->at("inner")); }), HasSubstr(": inner: is not a zip archive"));
}

TEST_F(ZipBounds, Models) {
  const std::string none = "\x80\x02N.", tuple = "\x80\x02)", list = "\x80\x02].";
  const auto with = [&](const std::vector<std::pair<std::string, std::string>>& entries, auto use) {
    write(zip(entries));
    return error_of([&] { use(ModelArchive::open(path_.string())); });
  };
  const auto nothing = [](const ModelArchive&) {};
  const auto constants = [](const ModelArchive& archive) { archive.constants(ObjectHooks{}); };
  const auto object = [](const ModelArchive& archive) { archive.object(ObjectHooks{}); };
  const std::pair<std::string, std::string> data{"data.pkl", none}, code{"code/a.py", ""}, version{"version", "3\n"};
  EXPECT_EQ(with({data, code, version}, nothing), "none");
  EXPECT_THAT(with({code, version}, nothing), HasSubstr("has no data.pkl: not a TorchScript archive"));
  EXPECT_THAT(with({data, version}, nothing), HasSubstr("has no code: written by torch.save"));
  EXPECT_THAT(with({data, code}, nothing), HasSubstr("has no version: not a TorchScript archive"));
  EXPECT_EQ(with({data, code, {".data/version", "3"}}, nothing), "none");
  EXPECT_THAT(with({data, code, {"version", "11"}}, nothing),
              HasSubstr("archive version 11 is newer than the newest known, 10"));
  EXPECT_EQ(with({data, code, version}, constants), "none");
  EXPECT_EQ(with({data, code, version, {"constants.pkl", list}}, constants), "none");
  EXPECT_EQ(with({data, code, version, {"constants.pkl", tuple + "."}}, constants), "none");
  EXPECT_THAT(with({data, code, version, {"constants.pkl", none}}, constants), HasSubstr("constants.pkl holds a"));
  EXPECT_THAT(with({data, code, version}, object), HasSubstr("data.pkl holds a"));
  EXPECT_THAT(with({data, code, version}, [](const ModelArchive& a) { a.extra_file("x"); }),
              HasSubstr("has no extra file x"));
}

}  // namespace
}  // namespace tensord::jit::archive_bounds_test
