// Tensors as PyTorch's C++ prints them: numbers in columns of one width, then what kind of tensor it is.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>

#include "tensord/tensor.h"

namespace tensord {
namespace {

constexpr int64_t kLineChars = 80;

const char* scalar_type_name(DType dtype) {
  switch (dtype) {
    case DType::kUInt8: return "Byte";
    case DType::kInt8: return "Char";
    case DType::kInt16: return "Short";
    case DType::kInt32: return "Int";
    case DType::kInt64: return "Long";
    case DType::kFloat16: return "Half";
    case DType::kFloat32: return "Float";
    case DType::kFloat64: return "Double";
    case DType::kComplex32: return "ComplexHalf";
    case DType::kComplex64: return "ComplexFloat";
    case DType::kComplex128: return "ComplexDouble";
    case DType::kBool: return "Bool";
    case DType::kBFloat16: return "BFloat16";
    case DType::kQInt8: return "QInt8";
    case DType::kQUInt8: return "QUInt8";
    case DType::kQInt32: return "QInt32";
    case DType::kQUInt4x2: return "QUInt4x2";
  }
  return "Undefined";
}

const char* device_type_name(const Tensor& tensor) {
  if (tensor.is_meta()) return "Meta";
  if (tensor.device().kind == kCUDA) return "CUDA";
  return tensor.device().is_host() ? "CPU" : "PrivateUse1";
}

// "[ CPUFloatType{2,3} ]".
std::string kind_of(const Tensor& tensor) {
  std::string out = concat("[ ", device_type_name(tensor), scalar_type_name(tensor.dtype()), "Type{");
  for (int64_t i = 0; i < tensor.ndim(); ++i) out += concat(i > 0 ? "," : "", tensor.size(i));
  return out + "} ]";
}

// How all numbers of a matrix are written.
struct NumberFormat {
  enum class Style : char { kInteger, kFixed, kScientific };
  Style style = Style::kInteger;
  int width = 2;
  double scale = 1;  // the numbers are divided by it

  std::string text(double value, bool is_padded) const {
    const int least = is_padded ? width : 0;
    const double scaled = std::isnan(value) ? std::fabs(value) : value / scale;
    char out[400];
    const char* format = style == Style::kInteger ? "%*.0f" : style == Style::kFixed ? "%*.4f" : "%*.4e";
    return std::string(out, static_cast<size_t>(std::snprintf(out, sizeof out, format, least, scaled)));
  }
};

// Digits before the decimal point; below one, minus the zeros behind it.
double exponent_of(double magnitude) { return magnitude == 0 ? 1 : std::floor(std::log10(magnitude)) + 1; }

NumberFormat format_of(std::span<const double> values) {
  bool are_integers = true, has_finite = false;
  double least = 0, most = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    are_integers = are_integers && value == std::ceil(value);
    const double magnitude = std::fabs(value);
    least = has_finite ? std::min(least, magnitude) : magnitude;
    most = has_finite ? std::max(most, magnitude) : magnitude;
    has_finite = true;
  }
  const double lowest = has_finite ? exponent_of(least) : 1, highest = has_finite ? exponent_of(most) : 1;
  using Style = NumberFormat::Style;
  if (are_integers) {
    if (highest > 9) return {Style::kScientific, 11};
    return {Style::kInteger, static_cast<int>(highest) + 1};
  }
  if (highest - lowest > 4) {
    return {Style::kScientific, std::fabs(highest) > 99 || std::fabs(lowest) > 99 ? 12 : 11};
  }
  if (highest > 5 || highest < 0) return {Style::kFixed, 7, std::pow(10, highest - 1)};
  return {Style::kFixed, highest == 0 ? 7 : static_cast<int>(highest) + 6};
}

// The elements of a tensor in the host's memory as doubles, row by row; of a complex one both parts of each.
class Printer {
 public:
  explicit Printer(const Tensor& tensor) : tensor_(tensor), parts_(is_complex(tensor.dtype()) ? 2 : 1) {
    const Tensor elements = tensor.to(Device()).to(parts_ == 2 ? DType::kComplex128 : DType::kFloat64).contiguous();
    const auto* first = static_cast<const double*>(elements.raw_data());
    values_.assign(first, first + elements.numel() * parts_);
  }

  std::string text() {
    const int64_t ndim = tensor_.ndim();
    if (ndim == 0) return element() + "\n";
    if (ndim == 1) return matrix(0, tensor_.size(0), 1);
    const int64_t rows = tensor_.size(-2), columns = tensor_.size(-1);
    if (ndim == 2) return matrix(0, rows, columns);
    std::string out;
    Dims place(static_cast<size_t>(ndim - 2), 0);
    do {
      out += out.empty() ? "(" : "\n(";
      int64_t index = 0;
      for (size_t i = 0; i < place.size(); ++i) {
        index = index * tensor_.sizes()[i] + place[i];
        out += concat(place[i] + 1, ",");
      }
      out += ".,.) = \n" + matrix(index * rows * columns, rows, columns);
    } while (advance(place));
    return out;
  }

 private:
  // The next place, the first dimension fastest; false after the last.
  bool advance(Dims& place) const {
    for (size_t i = 0; i < place.size(); ++i) {
      if (++place[i] < tensor_.sizes()[i]) return true;
      place[i] = 0;
    }
    return false;
  }

  // All digits that tell it from others of its dtype.
  std::string element() const {
    if (is_integral(tensor_.dtype(), true)) return std::to_string(tensor_.item_int());
    const auto digits = [&](double value) {
      char out[40];
      const bool is_double = tensor_.dtype() == DType::kFloat64 || tensor_.dtype() == DType::kComplex128;
      value = std::isnan(value) ? std::fabs(value) : value;
      const auto end = is_double ? std::to_chars(out, out + sizeof out, value)
                                 : std::to_chars(out, out + sizeof out, static_cast<float>(value));
      return std::string(out, end.ptr);
    };
    return parts_ == 1 ? digits(values_[0]) : joined(digits(values_[0]), digits(std::fabs(values_[1])), values_[1]);
  }

  static std::string joined(const std::string& real, const std::string& magnitude, double imaginary) {
    return concat(real, std::signbit(imaginary) ? "-" : "+", magnitude, "j");
  }

  std::string number(const NumberFormat& format, int64_t i) const {
    if (parts_ == 1) return format.text(values_[static_cast<size_t>(i)], true);
    const double imaginary = values_[static_cast<size_t>(2 * i + 1)];
    return joined(format.text(values_[static_cast<size_t>(2 * i)], true), format.text(std::fabs(imaginary), false),
                  imaginary);
  }

  std::string matrix(int64_t first, int64_t rows, int64_t columns) const {
    const auto of_matrix =
        std::span(values_).subspan(static_cast<size_t>(first * parts_), static_cast<size_t>(rows * columns * parts_));
    const NumberFormat format = format_of(of_matrix);
    const int64_t in_line = std::max<int64_t>(kLineChars / (parts_ * (format.width + 1)), 1);
    std::string out;
    for (int64_t begin = 0; begin < columns; begin += in_line) {
      const int64_t end = std::min(begin + in_line, columns);
      if (in_line < columns) out += concat(begin > 0 ? "\n" : "", "Columns ", begin + 1, " to ", end, "\n");
      if (format.scale != 1) out += concat(format.scale, " *\n");
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = begin; column < end; ++column) {
          out += number(format, first + row * columns + column);
          out += column + 1 < end ? " " : "\n";
        }
      }
    }
    return out;
  }

  const Tensor& tensor_;
  const int64_t parts_;
  std::vector<double> values_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.defined()) return out << "[ Tensor (undefined) ]";
  const NoGradGuard without_grad;
  std::string text;
  if (tensor.is_strided() && !tensor.is_meta() && tensor.numel() > 0) text = Printer(tensor).text();
  return out << text + kind_of(tensor);
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }

std::ostream& operator<<(std::ostream& out, const Device& device) { return out << to_string(device); }

}  // namespace tensord
