// Pickles of NumPy arrays, of byte strings, and of sparse tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/jit/archive/pickle.h"
#include "core/ops/sparse.h"

namespace tensord::jit::unpickler_numpy_test {
namespace {

using ops::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string int4(uint32_t number) {
  std::string out;
  for (int i = 0; i < 4; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
  return out;
}
std::string text(const std::string& value) { return "X" + int4(static_cast<uint32_t>(value.size())) + value; }
std::string bytes(const std::string& value) { return "T" + int4(static_cast<uint32_t>(value.size())) + value; }
std::string number(int32_t value) { return "J" + int4(static_cast<uint32_t>(value)); }
std::string tuple(const std::string& items) { return "(" + items + "t"; }

std::string dtype(const std::string& name) { return "cnumpy\ndtype\n" + text(name) + "\x85R"; }
std::string dtype(const std::string& name, const std::string& order) {
  return dtype(name) + tuple(number(3) + text(order) + "NN") + "b";
}
const std::string kNewArray = "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n\x85R";
std::string array(const std::string& sizes, const std::string& type, const std::string& is_fortran,
                  const std::string& elements) {
  return kNewArray + tuple(number(1) + tuple(sizes) + type + is_fortran + elements) + "b";
}
std::string encoded(const std::string& value) { return "c_codecs\nencode\n" + text(value) + text("latin1") + "\x86R"; }
template <class T>
std::string raw(const std::vector<T>& items) {
  std::string out(items.size() * sizeof(T), '\0');
  if (!items.empty()) std::memcpy(out.data(), items.data(), out.size());
  return out;
}
const std::string kNo = "\x89", kYes = "\x88";

UnpickleContext context() {
  UnpickleContext out;
  out.source = "test";
  out.storage = [](const std::string&) { return allocate_storage(16, {}); };
  out.has_numpy = true;
  return out;
}
Value load(const std::string& body) { return unpickle("\x80\x02" + body + ".", context()).value; }
std::string error_of(const std::string& body) {
  try {
    load(body);
  } catch (const Error& error) {
    return concat(to_string(error.code()), " ", error.what());
  }
  return "none";
}

TEST(NumpyPickle, Arrays) {
  const Tensor plain = load(array(number(3), dtype("u1", "|"), kNo, bytes("\1\2\3"))).to_tensor();
  EXPECT_EQ(plain.dtype(), DType::kUInt8);
  EXPECT_THAT(std::vector<uint8_t>(plain.data<uint8_t>(), plain.data<uint8_t>() + 3), ElementsAre(1, 2, 3));
  // Column-major (Fortran) order.
  const std::string columns = bytes(raw<int16_t>({1, 4, 2, 5, 3, 6}));
  const Tensor turned = load(array(number(2) + number(3), dtype("i2", "<"), kYes, columns)).to_tensor();
  EXPECT_EQ(turned.sizes(), Dims({2, 3}));
  EXPECT_TRUE(turned.is_contiguous());
  EXPECT_THAT(std::vector<int16_t>(turned.data<int16_t>(), turned.data<int16_t>() + 6), ElementsAre(1, 2, 3, 4, 5, 6));
  const Tensor deep = load(array(number(2) + number(1) + number(3), dtype("i2", "="), kYes, columns)).to_tensor();
  EXPECT_THAT(std::vector<int16_t>(deep.data<int16_t>(), deep.data<int16_t>() + 6), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(load(array(number(0) + number(3), dtype("f4", "<"), kYes, bytes(""))).to_tensor().sizes(), Dims({0, 3}));
  EXPECT_EQ(load(array("", dtype("f8", "<"), kNo, bytes(raw<double>({2.5})))).to_tensor().item_double(), 2.5);
  // NumPy 2 renamed its inner module.
  std::string newer = array(number(1), dtype("u1", "|"), kNo, bytes("\7"));
  newer.replace(newer.find("numpy.core"), 10, "numpy._core");
  EXPECT_EQ(load(newer).to_tensor().item_double(), 7);
}

TEST(NumpyPickle, TypesOfElements) {
  const std::pair<const char*, DType> types[] = {
      {"u1", DType::kUInt8}, {"i1", DType::kInt8},    {"i2", DType::kInt16},   {"i4", DType::kInt32},
      {"i8", DType::kInt64}, {"f2", DType::kFloat16}, {"f4", DType::kFloat32}, {"f8", DType::kFloat64}};
  for (const auto& [name, type] : types) {
    const Tensor one =
        load(array(number(1), dtype(name, "<"), kNo, bytes(std::string(size_of(type), '\0')))).to_tensor();
    EXPECT_EQ(one.dtype(), type) << name;
  }
  EXPECT_THAT(error_of(dtype("c8")), HasSubstr("a NumPy array that is not of uint8, int8 to int64"));
  EXPECT_THAT(error_of("cnumpy\ndtype\nN\x85R"), HasSubstr("a NumPy array that is not of uint8, int8 to int64"));
  EXPECT_THAT(error_of(dtype("f4", ">")), HasSubstr("big-endian arrays of NumPy are not supported"));
  for (const std::string& state : {std::string("N"), tuple(number(3)), tuple(number(3) + number(4))})
    EXPECT_THAT(error_of(dtype("f4") + state + "b"), HasSubstr("the state of a dtype has the wrong form"));
}

TEST(NumpyPickle, ArraysThatAreNone) {
  const std::string type = dtype("u1", "|"), wide = dtype("i2", "<"), three = bytes("\1\2\3");
  const std::pair<std::string, const char*> rows[] = {
      {kNewArray + "Nb", "the state of an array has the wrong form"},
      {kNewArray + tuple(number(1) + tuple(number(3)) + type + kNo) + "b", "the state of an array has the wrong form"},
      {array(number(3), "N" + type, kNo, three), "the state of an array has the wrong form"},
      {array(number(3), kNewArray, kNo, three), "the state of an array has the wrong form"},
      {array(number(3), type, "N", three), "the state of an array has the wrong form"},
      {array(number(3), type, kNo, "N"), "the state of an array has the wrong form"},
      {array("N", type, kNo, three), "a tensor has bad sizes"},
      {array(number(-1) + number(-3), type, kNo, three), "an array has a negative size"},
      {array(number(2), type, kNo, three), "an array of [2] has 3 bytes"},
      {array(number(4), type, kNo, three), "an array of [4] has 3 bytes"},
      {array(number(1), wide, kNo, three), "an array of [1] has 3 bytes"},
      {"cnumpy.core.multiarray\n_reconstruct\ncnumpy\ndtype\n\x85R", "an array is of another class than ndarray"},
      {"cnumpy.core.multiarray\n_reconstruct\nN\x85R", "an array is of another class than ndarray"}};
  for (const auto& [body, message] : rows) EXPECT_THAT(error_of(body), HasSubstr(message));
  const std::string huge = number(2147483647);
  EXPECT_THAT(error_of(array(huge + huge + huge, type, kNo, three)), HasSubstr("test: "));
}

TEST(NumpyPickle, ByteStrings) {
  EXPECT_EQ(load(encoded("a\xc3\xa9\xc2\x80z")).to_string(), "a\xe9\x80z");
  EXPECT_EQ(load(encoded("")).to_string(), "");
  EXPECT_EQ(load("U\3abc").to_string(), "abc");
  for (const char* wrong : {"\xc4\x80", "a\xc3", "\xc3z", "\xc2\xc3", "\x80", "\xff"})
    EXPECT_THAT(error_of(encoded(wrong)), HasSubstr("bytes are not latin1 text")) << wrong;
  EXPECT_THAT(error_of("c_codecs\nencode\n" + text("a") + text("utf8") + "\x86R"), HasSubstr("not latin1 text"));
  EXPECT_THAT(error_of("c_codecs\nencode\nN" + text("latin1") + "\x86R"), HasSubstr("not latin1 text"));
  EXPECT_THAT(error_of("c_codecs\nencode\n" + text("a") + "N\x86R"), HasSubstr("not latin1 text"));
}

TEST(NumpyPickle, OnlyWhereTheReaderWantsThem) {
  UnpickleContext plain = context();
  plain.has_numpy = false;
  const auto refused = [&](const std::string& body) -> std::string {
    try {
      unpickle("\x80\x02" + body + ".", plain);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(refused(dtype("u1")), HasSubstr("class 'numpy.dtype' is not allowed"));
  EXPECT_THAT(refused(encoded("a")), HasSubstr("class '_codecs.encode' is not allowed"));
  EXPECT_THAT(refused("U\1a"), HasSubstr("opcode 85 at byte 2 is not allowed"));
  EXPECT_THAT(error_of("cnumpy\nfloat32\n"), HasSubstr("class 'numpy.float32' is not allowed"));
  EXPECT_THAT(error_of("V"), HasSubstr("opcode 86 at byte 2 is not allowed"));
}

// ---- sparse tensors

std::string layout(const std::string& name) { return "ctorch.serialization\n_get_layout\n" + text(name) + "\x85R"; }
std::string longs(const std::string& sizes, const std::vector<int64_t>& items) {
  return array(sizes, dtype("i8", "<"), kNo, bytes(raw(items)));
}
std::string floats(const std::vector<float>& items) {
  return array(number(static_cast<int32_t>(items.size())), dtype("f4", "<"), kNo, bytes(raw(items)));
}
std::string sparse(const std::string& arguments) {
  return "ctorch._utils\n_rebuild_sparse_tensor\n" + tuple(arguments) + "R";
}

const std::string kPlaces = longs(number(1) + number(2), {0, 2});
const std::string kStarts = longs(number(3), {0, 1, 2}), kColumns = longs(number(2), {1, 0});
const std::string kItems = floats({5, 6}), kThree = tuple(number(3)), kTwo = tuple(number(2) + number(2));

TEST(SparsePickle, OfTorchSave) {
  const std::string coo = layout("torch.sparse_coo");
  const auto coalesced = [&](const std::string& flag) {
    const Value value = load(sparse(coo + tuple(kPlaces + kItems + kThree + flag)));
    const ops::SparseTensor* tensor = ops::as_sparse(value);
    EXPECT_TRUE(tensor->is_coo());
    EXPECT_EQ(tensor->nnz(), 2);
    EXPECT_EQ(tensor->values().data<float>()[1], 6);
    return tensor->is_coalesced();
  };
  EXPECT_FALSE(coalesced(""));
  EXPECT_FALSE(coalesced("N"));
  EXPECT_FALSE(coalesced(kNo));
  EXPECT_TRUE(coalesced(kYes));
  const Value csr = load(sparse(layout("torch.sparse_csr") + tuple(kStarts + kColumns + kItems + kTwo)));
  EXPECT_EQ(ops::as_sparse(csr)->sparse_layout(), ops::SparseLayout::kCsr);
  EXPECT_EQ(ops::as_sparse(csr)->compressed_indices().data<int64_t>()[2], 2);
}

TEST(SparsePickle, OfModules) {
  const Value coo = load(sparse(layout("torch.sparse_coo") + kThree + kNo + kPlaces + kItems + "N"));
  EXPECT_EQ(ops::as_sparse(coo)->nnz(), 2);
  const Value csc = load(sparse(layout("torch.sparse_csc") + kTwo + kNo + kStarts + kColumns + kItems));
  EXPECT_EQ(ops::as_sparse(csc)->sparse_layout(), ops::SparseLayout::kCsc);
}

TEST(SparsePickle, Layouts) {
  EXPECT_EQ(load(layout("torch.strided")).to_int(), 0);
  const std::pair<const char*, ops::SparseLayout> rows[] = {{"torch.sparse_coo", ops::SparseLayout::kCoo},
                                                            {"torch.sparse_csr", ops::SparseLayout::kCsr},
                                                            {"torch.sparse_csc", ops::SparseLayout::kCsc},
                                                            {"torch.sparse_bsr", ops::SparseLayout::kBsr},
                                                            {"torch.sparse_bsc", ops::SparseLayout::kBsc}};
  for (const auto& [name, found] : rows) EXPECT_EQ(load(layout(name)).to_int(), static_cast<int64_t>(found)) << name;
  EXPECT_THAT(error_of(layout("torch.jagged")), HasSubstr("layout 'torch.jagged' is not supported"));
  EXPECT_THAT(error_of("ctorch.serialization\n_get_layout\nN\x85R"), HasSubstr("a layout has no name"));
}

TEST(SparsePickle, WhatIsNone) {
  const std::string coo = layout("torch.sparse_coo"), csr = layout("torch.sparse_csr");
  const std::pair<std::string, const char*> rows[] = {
      {"N" + tuple(kPlaces + kItems + kThree), "a sparse tensor has no layout"},
      {coo + "N", "a sparse tensor has no parts"},
      {coo + tuple(""), "a sparse tensor has too few parts"},
      {coo + tuple("N"), "a sparse tensor has too few parts"},
      {coo + tuple(kThree), "a sparse tensor has too few parts"},
      {coo + tuple(kItems + kThree), "a sparse tensor has the wrong number of parts"},
      {coo + tuple(kPlaces + kItems + kItems + kThree), "a sparse tensor has the wrong number of parts"},
      {csr + tuple(kStarts + kItems + kTwo), "a sparse tensor has the wrong number of parts"},
      {coo + kThree + kNo + kPlaces, "a sparse tensor has too few parts"},
      {csr + kTwo + kNo + kStarts + kColumns, "a sparse tensor has too few parts"},
      {coo + tuple("N" + kItems + kThree), "a part of a sparse tensor is not a tensor"},
      {coo + tuple(longs(number(1) + number(2), {0, 9}) + kItems + kThree), ""},
      // Four stored elements of a tensor of forty.
      {coo + tuple(kPlaces + "ctorch._utils\n_rebuild_tensor_v2\n(" +
                   tuple(text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(4)) + "Q" +
                   number(0) + tuple(number(2) + number(20)) + tuple(number(0) + number(0)) + kNo + "}tR" + kThree),
       "a part of a sparse tensor has more elements than memory"}};
  for (const auto& [arguments, message] : rows) {
    const std::string error = error_of(sparse(arguments));
    EXPECT_THAT(error, HasSubstr(message));
    EXPECT_THAT(error, StartsWith("DATA_LOSS test: "));
    EXPECT_THAT(error, ::testing::Not(HasSubstr("test: test: ")));
  }
}

}  // namespace
}  // namespace tensord::jit::unpickler_numpy_test
