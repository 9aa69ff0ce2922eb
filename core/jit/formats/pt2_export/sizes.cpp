// What the sizes of results are, found from two examples of them.
#include "core/base/error.h"
#include "core/jit/formats/pt2_export/program_writer.h"

namespace tensord::jit::pt2 {
namespace {

std::string integer(int64_t value) { return concat("Integer(", value, ")"); }

// e, c e, e + c, c e + d and e / c.
std::string find_linear(int64_t a, int64_t b, const OpenSize& size) {
  const std::string& e = size.expression;
  if (size.a == a && size.b == b) return e;
  const int64_t step = size.b - size.a;
  if (step == 0) return "";
  if ((b - a) % step == 0 && (b - a) / step > 0) {
    const int64_t factor = (b - a) / step, rest = a - factor * size.a;
    const std::string product = factor == 1 ? e : concat("Mul(", integer(factor), ", ", e, ")");
    return rest == 0 ? product : concat("Add(", integer(rest), ", ", product, ")");
  }
  for (int64_t divisor = 2; divisor <= 64 && a > 0; ++divisor) {
    // As strided layers round: with an offset of up to the divisor.
    for (int64_t offset = 0; offset < divisor; ++offset) {
      if ((size.a + offset) / divisor != a || (size.b + offset) / divisor != b) continue;
      const std::string sum = offset == 0 ? e : concat("Add(", integer(offset), ", ", e, ")");
      return concat("FloorDiv(", sum, ", ", integer(divisor), ")");
    }
  }
  return "";
}

}  // namespace

std::string symbol_expression(const std::string& symbol) {
  return concat("Symbol('", symbol, "', positive=True, integer=True)");
}

std::string find_expression(int64_t a, int64_t b, const std::vector<OpenSize>& known) {
  for (const OpenSize& size : known) {
    if (size.a == a && size.b == b) return size.expression;
  }
  for (size_t i = 0; i < known.size(); ++i) {
    for (size_t k = i + 1; k < known.size(); ++k) {
      const OpenSize &x = known[i], &y = known[k];
      if (x.a + y.a == a && x.b + y.b == b) return concat("Add(", x.expression, ", ", y.expression, ")");
    }
  }
  // Of one size a multiple or a part before products: those that leave no rest first.
  for (const OpenSize& size : known) {
    if (size.a != 0 && size.b != 0 && a % size.a == 0 && b % size.b == 0 && a / size.a == b / size.b) {
      return concat("Mul(", integer(a / size.a), ", ", size.expression, ")");
    }
  }
  for (size_t i = 0; i < known.size(); ++i) {
    for (size_t k = i + 1; k < known.size(); ++k) {
      const OpenSize product{known[i].a * known[k].a, known[i].b * known[k].b,
                             concat("Mul(", known[i].expression, ", ", known[k].expression, ")")};
      if (product.a == 0 || product.b == 0 || a % product.a != 0 || b % product.b != 0) continue;
      if (a / product.a != b / product.b) continue;
      return a == product.a ? product.expression
                            : concat("Mul(", integer(a / product.a), ", ", product.expression, ")");
    }
  }
  for (const OpenSize& size : known) {
    const std::string found = find_linear(a, b, size);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace tensord::jit::pt2
