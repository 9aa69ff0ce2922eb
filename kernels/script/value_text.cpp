#include "kernels/script/value_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tensord::kernels {
namespace {

constexpr int kMaxDepth = 64;
constexpr int64_t kMaxPrintedElements = 1000;

// The name of a tensor's type in PyTorch's C++ API.
const char* type_word(DType dtype) {
  switch (dtype) {
    case DType::kUInt8: return "Byte";
    case DType::kInt8: return "Char";
    case DType::kInt16: return "Short";
    case DType::kInt32: return "Int";
    case DType::kInt64: return "Long";
    case DType::kFloat16: return "Half";
    case DType::kFloat32: return "Float";
    case DType::kFloat64: return "Double";
    case DType::kBool: return "Bool";
    case DType::kBFloat16: return "BFloat16";
    default: return "Undefined";
  }
}

std::string type_prefix(DeviceKind kind) { return kind == kCPU ? "CPU" : kind == kCUDA ? "CUDA" : "PrivateUse1"; }

// Prints vectors with one element a line, other shapes as nested brackets, then "[ CPUFloatType{2,3} ]".
std::string tensor_text(const Tensor& x) {
  if (!x.is_strided()) return "<" + describe(x) + ">";
  std::string out;
  if (x.is_meta()) return describe(x);
  const Tensor dense = x.to(Device{}).contiguous();
  if (dense.ndim() == 0) {
    out = element_text(dense, 0) + "\n";
  } else {
    const int64_t row = dense.ndim() == 1 ? 1 : std::max<int64_t>(dense.sizes().back(), 1);
    const int64_t count = std::min(dense.numel(), kMaxPrintedElements);
    for (int64_t i = 0; i < count; ++i) out += " " + element_text(dense, i) + ((i + 1) % row == 0 ? "\n" : " ");
    if (count < dense.numel()) out += " ...\n";
  }
  std::string shape = to_string(x.sizes());
  std::erase(shape, ' ');
  return out + "[ " + type_prefix(x.device().kind) + type_word(x.dtype()) + "Type{" +
         shape.substr(1, shape.size() - 2) + "} ]";
}

void append_text(std::string& out, const ops::Value& value, int depth);

template <class Items>
void append_items(std::string& out, const Items& items, int depth) {
  bool is_first = true;
  for (const ops::Value& item : items) {
    if (!is_first) out += ", ";
    is_first = false;
    append_text(out, item, depth);
  }
}

void append_text(std::string& out, const ops::Value& value, int depth) {
  check(depth < kMaxDepth, "str: the value is nested too deeply");
  using Tag = ops::Value::Tag;
  switch (value.tag()) {
    case Tag::kNone: out += "None"; return;
    case Tag::kBool: out += value.to_bool() ? "True" : "False"; return;
    case Tag::kInt: out += std::to_string(value.to_int()); return;
    case Tag::kFloat: out += float_text(value.to_float()); return;
    case Tag::kDevice: {
      const Device device = value.to_device();
      out += to_string(device);
      return;
    }
    case Tag::kString: out += value.to_string(); return;
    case Tag::kTensor: out += tensor_text(value.to_tensor()); return;
    case Tag::kList:
      out += "[";
      append_items(out, value.to_list()->items, depth + 1);
      out += "]";
      return;
    case Tag::kTuple: {
      const auto& items = value.to_tuple()->items;
      out += "(";
      append_items(out, items, depth + 1);
      out += items.size() == 1 ? ",)" : ")";
      return;
    }
    case Tag::kDict: {
      out += "{";
      bool is_first = true;
      for (const auto& [key, item] : value.to_dict()->items()) {
        if (!is_first) out += ", ";
        is_first = false;
        append_text(out, key, depth + 1);
        out += ": ";
        append_text(out, item, depth + 1);
      }
      out += "}";
      return;
    }
    case Tag::kEnum: {
      const std::string& type = value.to_enum()->type->name();
      out += "Enum<" + type.substr(type.rfind('.') + 1) + "." + value.to_enum()->name + ">";
      return;
    }
    case Tag::kObject: out += "<" + value.to_object()->type->name() + " object>"; return;
    default: out += std::string("<") + value.tag_name() + ">"; return;
  }
}

}  // namespace

std::string float_text(double value) {
  const bool is_plain = std::isfinite(value) && (value == 0 || std::isnormal(value)) && std::abs(value) < 9.2e18;
  if (is_plain && std::trunc(value) == value) {
    // Whole numbers that fit an int64 get a trailing point.
    return std::to_string(static_cast<int64_t>(value)) + ".";
  }
  if (std::isnan(value)) return "nan";
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.17g", value);
  return buffer;
}

std::string value_text(const ops::Value& value) {
  std::string out;
  append_text(out, value, 0);
  return out;
}

}  // namespace tensord::kernels
