#include "core/distributed/value_bytes.h"

#include <cstring>
#include <type_traits>

#include "core/base/error.h"

namespace tensord::distributed {
namespace {

using ops::Value;

enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kString, kTensor, kList, kTuple, kDict };
constexpr int kMaxDepth = 64;

template <class T>
void put(std::string& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_tensor(std::string& out, const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  put(out, static_cast<int64_t>(dense.dtype()));
  put(out, dense.ndim());
  for (const int64_t size : dense.sizes()) put(out, size);
  out.append(static_cast<const char*>(dense.raw_data()), dense.size_bytes());
}

void put_value(std::string& out, const Value& value, int depth) {
  check(depth < kMaxDepth, "a value for other ranks is nested more than ", kMaxDepth, " deep");
  const auto items = [&](Kind kind, const std::vector<Value>& of) {
    put(out, kind);
    put(out, static_cast<uint64_t>(of.size()));
    for (const Value& item : of) put_value(out, item, depth + 1);
  };
  if (value.is_none()) {
    put(out, Kind::kNone);
  } else if (value.is_bool()) {
    put(out, Kind::kBool), put(out, value.to_bool());
  } else if (value.is_int()) {
    put(out, Kind::kInt), put(out, value.to_int());
  } else if (value.is_float()) {
    put(out, Kind::kFloat), put(out, value.to_float());
  } else if (value.is_string()) {
    put(out, Kind::kString), put(out, static_cast<uint64_t>(value.to_string().size()));
    out += value.to_string();
  } else if (value.is_strided()) {
    put(out, Kind::kTensor), put_tensor(out, value.to_tensor());
  } else if (value.is_list()) {
    items(Kind::kList, value.to_list()->items);
  } else if (value.is_tuple()) {
    items(Kind::kTuple, value.to_tuple()->items);
  } else if (value.is_dict()) {
    put(out, Kind::kDict);
    put(out, static_cast<uint64_t>(value.to_dict()->items().size()));
    for (const auto& [key, item] : value.to_dict()->items()) {
      put_value(out, key, depth + 1);
      put_value(out, item, depth + 1);
    }
  } else {
    fail(ErrorCode::kUnimplemented, "a ", value.tag_name(), " cannot be sent to other ranks");
  }
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  Value value(int depth = 0) {
    require(depth < kMaxDepth);
    switch (get<Kind>()) {
      case Kind::kNone: return {};
      case Kind::kBool: return get<uint8_t>() != 0;
      case Kind::kInt: return get<int64_t>();
      case Kind::kFloat: return get<double>();
      case Kind::kString: return std::string(take(get<uint64_t>()));
      case Kind::kTensor: return tensor();
      case Kind::kList: return ops::make_list(ops::any_type(), items(depth));
      case Kind::kTuple: return ops::make_tuple(items(depth));
      case Kind::kDict: return dict(depth);
    }
    fail_bytes();
  }
  void expect_end() const { require(rest_.empty()); }

 private:
  [[noreturn]] static void fail_bytes() { fail(ErrorCode::kDataLoss, "bytes from another rank are not a valid value"); }
  static void require(bool condition) {
    if (!condition) fail_bytes();
  }
  std::string_view take(uint64_t count) {
    require(count <= rest_.size());
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::vector<Value> items(int depth) {
    const auto count = get<uint64_t>();
    require(count <= rest_.size());  // each element takes at least one byte
    std::vector<Value> out;
    for (uint64_t i = 0; i < count; ++i) out.push_back(value(depth + 1));
    return out;
  }
  Value dict(int depth) {
    const auto count = get<uint64_t>();
    const auto made = make_intrusive<ops::DictObject>(ops::any_type(), ops::any_type());
    for (uint64_t i = 0; i < count; ++i) {
      Value key = value(depth + 1);
      require(key.is_string() || key.is_number());
      made->set(std::move(key), value(depth + 1));
    }
    return Value(made);
  }
  Value tensor() {
    const DType dtype = dtype_from_number(get<int64_t>());
    const auto ndim = get<int64_t>();
    require(ndim >= 0 && ndim <= 64);
    Dims sizes;
    uint64_t count = size_of(dtype);
    for (int64_t i = 0; i < ndim; ++i) {
      sizes.push_back(get<int64_t>());
      require(sizes.back() >= 0 && !__builtin_mul_overflow(count, static_cast<uint64_t>(sizes.back()), &count));
    }
    const std::string_view bytes = take(count);
    const Tensor out = Tensor::empty(sizes, dtype);
    if (!bytes.empty()) std::memcpy(out.raw_data(), bytes.data(), bytes.size());
    return out;
  }

  std::string_view rest_;
};

}  // namespace

std::string bytes_of_value(const Value& value) {
  std::string out;
  put_value(out, value, 0);
  return out;
}

Value value_of_bytes(std::string_view bytes) {
  Reader reader(bytes);
  Value value = reader.value();
  reader.expect_end();
  return value;
}

}  // namespace tensord::distributed
