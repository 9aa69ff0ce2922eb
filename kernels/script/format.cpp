#include <algorithm>
#include <cstdio>

#include "core/ops/op.h"
#include "kernels/pointwise/scalar_math.h"
#include "kernels/script/value_text.h"

// "…{}…".format(…) and "…%s…" % (…).
namespace tensord::kernels {
namespace {

using ops::Value;

std::string format(std::span<const Value> arguments) {
  check(!arguments.empty() && arguments[0].is_string(), "format: the first argument must be a string");
  const std::string& pattern = arguments[0].to_string();
  std::string out;
  size_t begin = 0;
  for (size_t used = 1;; ++used) {
    const size_t found = pattern.find("{}", begin);
    if (found == std::string::npos) break;
    out.append(pattern, begin, found - begin);
    check(used < arguments.size(), "Too few arguments for format string: ", pattern);
    out += value_text(arguments[used]);
    begin = found + 2;
  }
  return out.append(pattern, begin);
}

int64_t number_for_format(const Value& value) {
  check(value.is_int() || value.is_float(), "%d requires a number for formatting, but got ", value.tag_name());
  const ops::Scalar number = value.to_scalar();
  // libtorch converts a float to a C int here.
  if (!number.is_float()) return number.to_int();
  const double wide = number.to_double();
  return wide >= -2147483648.0 && wide < 2147483648.0 ? static_cast<int64_t>(wide) : INT32_MIN;
}

std::string float_as(const Value& value, char conversion) {
  check(value.is_int() || value.is_float(), "%", conversion, " requires a number for formatting, but got ",
        value.tag_name());
  const char pattern[] = {'%', conversion, 0};
  char buffer[512];
  const int length = std::snprintf(buffer, sizeof(buffer), pattern, static_cast<double>(value.to_scalar().to<float>()));
  return std::string(buffer, static_cast<size_t>(std::clamp(length, 0, 511)));
}

std::string convert(char conversion, const Value& value) {
  switch (conversion) {
    case 'd':
    case 'i': return std::to_string(number_for_format(value));
    case 's': return value_text(value);
    case 'e':
    case 'E':
    case 'f':
    case 'F': return float_as(value, conversion == 'F' ? 'f' : conversion);  // in float32, as libtorch does
    case 'c':
      if (value.is_int()) return std::string(1, static_cast<char>(value.to_int()));
      check(value.is_string() && value.to_string().size() == 1, "%c requires an int or char for formatting, but got ",
            value.tag_name());
      return value.to_string();
    default:
      fail(ErrorCode::kInvalidArgument, "The specifier %", conversion,
           " is not supported in TorchScript format strings");
  }
}

std::string percent_format(std::span<const Value> arguments) {
  check(!arguments.empty() && arguments[0].is_string(), "percentFormat: the first argument must be a string");
  const std::string& pattern = arguments[0].to_string();
  // If the right operand of % is a tuple, it holds the arguments.
  std::vector<Value> values(arguments.begin() + 1, arguments.end());
  if (values.size() == 1 && values[0].is_tuple()) {
    const auto items = values[0].to_tuple()->items;
    values = items;
  }
  std::string out;
  size_t begin = 0, used = 0;
  while (true) {
    const size_t found = pattern.find('%', begin);
    if (found == std::string::npos) break;
    out.append(pattern, begin, found - begin);
    check(found + 1 < pattern.size(), "Incomplete format specifier");
    begin = found + 2;
    if (pattern[found + 1] == '%') {
      out += '%';
      continue;
    }
    check(used < values.size(), "Too few arguments for format string");
    out += convert(pattern[found + 1], values[used++]);
  }
  check(used == values.size(), "Too many arguments for format string");
  return out.append(pattern, begin);
}

OP("aten::format").impl(format);
OP("aten::percentFormat").impl(percent_format);

}  // namespace
}  // namespace tensord::kernels
