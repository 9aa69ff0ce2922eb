// NumPy arrays and Python 2 byte strings, which Python programs pickle their data with. Enabled by
// UnpickleContext::has_numpy.
#include <bit>
#include <cstring>
#include <map>

#include "core/base/error.h"
#include "core/jit/archive/unpickler.h"

namespace tensord::jit {

using ops::Value;

// A numpy.dtype. The call gives its name; the state that follows gives its byte order.
struct Unpickler::NumpyDType final : Machinery {
  std::string class_name() const override { return "numpy.dtype"; }
  DType dtype = DType::kUInt8;
};

// An array that has no state yet. The state makes it a tensor.
struct Unpickler::NumpyArray final : Machinery {
  std::string class_name() const override { return "numpy.ndarray"; }
};

std::optional<Value> Unpickler::numpy_global(const std::string& name) {
  if (!context_.has_numpy) return std::nullopt;
  const auto give = [&](Call call) {
    return Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<Global>(name, call)));
  };
  // NumPy 2 renamed its inner module.
  if (name == "numpy.core.multiarray._reconstruct" || name == "numpy._core.multiarray._reconstruct")
    return give(&Unpickler::call_numpy_array);
  if (name == "numpy.dtype") return give(&Unpickler::call_numpy_dtype);
  if (name == "_codecs.encode") return give(&Unpickler::call_encode);
  if (name == "numpy.ndarray") return give(nullptr);
  return std::nullopt;
}

// BINSTRING and SHORT_BINSTRING.
bool Unpickler::step_bytes(char opcode) {
  if (!context_.has_numpy || (opcode != 'T' && opcode != 'U')) return false;
  push(Value(std::string(take(take_number(opcode == 'T' ? 4 : 1)))));
  return true;
}

Value Unpickler::call_numpy_array(const Global& callee, std::span<const Value> arguments) {
  const auto* type = as<Global>(argument(callee, arguments, 0));
  if (!type || type->name != "numpy.ndarray") malformed("an array is of another class than ndarray");
  spend(4);
  return Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<NumpyArray>()));
}

Value Unpickler::call_numpy_dtype(const Global& callee, std::span<const Value> arguments) {
  static const std::map<std::string_view, DType> kTypes = {
      {"u1", DType::kUInt8}, {"i1", DType::kInt8},    {"i2", DType::kInt16},   {"i4", DType::kInt32},
      {"i8", DType::kInt64}, {"f2", DType::kFloat16}, {"f4", DType::kFloat32}, {"f8", DType::kFloat64}};
  const Value& name = argument(callee, arguments, 0);
  const auto found = name.is_string() ? kTypes.find(name.to_string()) : kTypes.end();
  if (found == kTypes.end()) {
    fail(ErrorCode::kUnimplemented, context_.source,
         ": a NumPy array that is not of uint8, int8 to int64 or float16 to ", "float64 is not supported");
  }
  spend(4);
  auto made = make_intrusive<NumpyDType>();
  made->dtype = found->second;
  return Value(IntrusivePtr<ops::OpaqueObject>(made));
}

// Python 3 writes bytes in protocol 2 as a text whose characters are the bytes.
Value Unpickler::call_encode(const Global& callee, std::span<const Value> arguments) {
  const Value &text = argument(callee, arguments, 0), &codec = argument(callee, arguments, 1);
  if (!text.is_string() || !codec.is_string() || codec.to_string() != "latin1") malformed("bytes are not latin1 text");
  const std::string& from = text.to_string();
  std::string out;
  for (size_t i = 0; i < from.size(); ++i) {
    const auto byte = static_cast<unsigned char>(from[i]);
    const bool is_pair = (byte == 0xc2 || byte == 0xc3) && (from[i + 1] & 0xc0) == 0x80;
    if (byte >= 0x80 && !is_pair) malformed("bytes are not latin1 text");
    out += is_pair ? static_cast<char>((byte & 3) << 6 | (from[++i] & 0x3f)) : from[i];
  }
  return Value(std::move(out));
}

// Applies the state if the top of the stack is a NumPy object; returns false otherwise.
bool Unpickler::build_numpy(const Value& state) {
  Value& target = top();
  const auto* raw = as<RawTuple>(state);
  if (as<NumpyDType>(target)) {
    // (version, byte order, …). The other items belong to structured dtypes.
    if (!state.is_tuple() || state.to_tuple()->items.size() < 2 || !state.to_tuple()->items[1].is_string())
      malformed("the state of a dtype has the wrong form");
    const std::string& order = state.to_tuple()->items[1].to_string();
    if (order != "<" && order != "|" && !(order == "=" && std::endian::native == std::endian::little))
      fail(ErrorCode::kUnimplemented, context_.source, ": big-endian arrays of NumPy are not supported");
    return true;
  }
  if (!as<NumpyArray>(target)) return false;
  // (version, shape, dtype, is_fortran, bytes)
  if (!raw || raw->items.size() != 5) malformed("the state of an array has the wrong form");
  const auto* dtype = as<NumpyDType>(raw->items[2]);
  if (!dtype || !raw->items[3].is_bool() || !raw->items[4].is_string())
    malformed("the state of an array has the wrong form");
  const Dims sizes = to_dims(raw->items[1], "sizes");
  const std::string& bytes = raw->items[4].to_string();
  spend(16);
  const Tensor array = numpy_tensor(sizes, dtype->dtype, raw->items[3].to_bool(), bytes);
  top() = Value(array);
  return true;
}

Tensor Unpickler::numpy_tensor(const Dims& sizes, DType dtype, bool is_fortran, const std::string& bytes) const {
  for (const int64_t size : sizes) {
    if (size < 0) malformed("an array has a negative size");
  }
  int64_t numel = 0;
  try {
    numel = checked_numel(sizes);
  } catch (const Error& error) {
    fail(error.code(), context_.source, ": ", error.what());
  }
  const size_t available = bytes.size() / size_of(dtype);
  if (static_cast<uint64_t>(numel) != available || bytes.size() % size_of(dtype))
    malformed(concat("an array of ", to_string(sizes), " has ", bytes.size(), " bytes"));
  Dims strides = contiguous_strides(sizes);
  if (is_fortran) {
    int64_t step = 1;
    for (size_t d = 0; d < strides.size(); ++d) {
      strides[d] = step;
      step *= sizes[d];
    }
  }
  const Storage storage = allocate_storage(bytes.size(), {});
  if (!bytes.empty()) std::memcpy(storage->data(), bytes.data(), bytes.size());
  return Tensor::from_storage(storage, sizes, strides, 0, dtype).contiguous();
}

}  // namespace tensord::jit
