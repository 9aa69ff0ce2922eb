#include "server/commands/print_value.h"

#include <ostream>
#include <string>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/tensor/tensor.h"

namespace tensord::server {
namespace {

constexpr int64_t kMaxShown = 1000;
constexpr int kMaxLevels = 32;

std::string element_text(const Tensor& tensor, int64_t index) {
  const Tensor one = tensor.as_view({}, {}, tensor.offset() + index);
  if (one.dtype() == DType::kBool) return one.item_bool() ? "true" : "false";
  if (is_integral(one.dtype(), false)) return std::to_string(one.item_int());
  return concat(one.item_double());
}

// Prints the first kMaxShown elements of a contiguous tensor as nested lists.
class ElementPrinter {
 public:
  ElementPrinter(std::ostream& out, const Tensor& tensor) : out_(out), tensor_(tensor) {}

  void print(int64_t dim) {
    if (dim == tensor_.ndim()) {
      out_ << element_text(tensor_, next_++);
      return;
    }
    out_ << "[";
    for (int64_t i = 0; i < tensor_.size(dim); ++i) {
      if (i > 0) out_ << (dim + 1 < tensor_.ndim() ? ",\n " : ", ");
      if (next_ >= kMaxShown) {
        out_ << "…";
        break;
      }
      print(dim + 1);
    }
    out_ << "]";
  }

 private:
  std::ostream& out_;
  const Tensor& tensor_;
  int64_t next_ = 0;
};

void print_tensor(std::ostream& out, const Tensor& tensor) {
  out << describe(tensor) << "\n";
  if (is_complex(tensor.dtype())) return;
  const Tensor rows = tensor.contiguous();
  ElementPrinter(out, rows).print(0);
  out << "\n";
}

void print_at(std::ostream& out, const ops::Value& value, const std::string& place, int level) {
  check(level < kMaxLevels, "the result nests deeper than ", kMaxLevels, " levels");
  const auto inner = [&](const ops::Value& item, const std::string& name) {
    print_at(out, item, place.empty() ? name : place + "." + name, level + 1);
  };
  const std::string prefix = place.empty() ? "" : to_printable(place) + "  ";
  if (value.is_tuple()) {
    const ops::TupleObject& tuple = *value.to_tuple();
    for (size_t i = 0; i < tuple.items.size(); ++i) {
      inner(tuple.items[i], tuple.type ? tuple.type->field_names()[i] : std::to_string(i));
    }
  } else if (value.is_list()) {
    const auto& items = value.to_list()->items;
    for (size_t i = 0; i < items.size(); ++i) inner(items[i], std::to_string(i));
  } else if (value.is_dict()) {
    for (const auto& [key, item] : value.to_dict()->items()) {
      inner(item, key.is_string() ? key.to_string() : key.is_int() ? std::to_string(key.to_int()) : key.tag_name());
    }
  } else if (value.is_strided()) {
    out << prefix;
    print_tensor(out, value.to_tensor());
  } else if (value.is_tensor()) {
    out << prefix << "a tensor " << describe(value.to_tensor()) << "\n";
  } else if (value.is_string()) {
    out << prefix << to_printable(value.to_string()) << "\n";
  } else if (value.is_bool()) {
    out << prefix << (value.to_bool() ? "true" : "false") << "\n";
  } else if (value.is_int()) {
    out << prefix << value.to_int() << "\n";
  } else if (value.is_number()) {
    out << prefix << value.to_float() << "\n";
  } else {
    out << prefix << value.tag_name() << "\n";
  }
}

}  // namespace

void print_value(std::ostream& out, const ops::Value& value) { print_at(out, value, "", 0); }

}  // namespace tensord::server
