// Finds expressions for the sizes of results: derived from the examples, accepted if all probes agree.
#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/jit/exporters/pt2/program_writer.h"

namespace tensord::jit::pt2 {
namespace {

// A formula must hold in this many probes, or in all known ones if there are fewer.
constexpr int64_t kMinProbes = 3;
// Larger sizes are irrelevant; sums and products of two values up to this fit an int64.
constexpr int64_t kLargest = int64_t{1} << 31;

std::string integer(int64_t value) { return concat("Integer(", value, ")"); }

// An expression with its values in the examples and in each probe.
template <class Fn>
OpenSize computed(std::string expression, const OpenSize& x, const OpenSize& y, const Fn& fn) {
  OpenSize out{fn(x.a, y.a), fn(x.b, y.b), std::move(expression), true, {}};
  for (size_t i = 0; i < x.probes.size() && i < y.probes.size(); ++i) {
    const bool is_known = x.probes[i] && y.probes[i] && *x.probes[i] <= kLargest && *y.probes[i] <= kLargest;
    out.probes.push_back(is_known ? std::optional(fn(*x.probes[i], *y.probes[i])) : std::nullopt);
  }
  return out;
}

OpenSize fixed(int64_t value, const OpenSize& like) {
  return {value, value, integer(value), false, std::vector<std::optional<int64_t>>(like.probes.size(), value)};
}

OpenSize sum_of(const OpenSize& x, const OpenSize& y) {
  return computed(concat("Add(", x.expression, ", ", y.expression, ")"), x, y,
                  [](int64_t a, int64_t b) { return a + b; });
}
OpenSize product_of(const OpenSize& x, const OpenSize& y) {
  return computed(concat("Mul(", x.expression, ", ", y.expression, ")"), x, y,
                  [](int64_t a, int64_t b) { return a * b; });
}
OpenSize multiple(int64_t factor, const OpenSize& x) { return factor == 1 ? x : product_of(fixed(factor, x), x); }
OpenSize plus(int64_t offset, const OpenSize& x) { return offset == 0 ? x : sum_of(fixed(offset, x), x); }
OpenSize part(const OpenSize& x, int64_t divisor) {
  return computed(concat("FloorDiv(", x.expression, ", ", integer(divisor), ")"), x, fixed(divisor, x),
                  [](int64_t a, int64_t b) { return a / b; });
}

class Search {
 public:
  Search(const OpenSize& wanted, const std::vector<OpenSize>& known) : wanted_(wanted) {
    std::ranges::copy_if(known, std::back_inserter(known_), &OpenSize::is_open);
  }

  std::string run() {
    for (const OpenSize& size : known_) {
      if (fits(size)) return size.expression;
    }
    for (size_t i = 0; i < known_.size(); ++i) {
      for (size_t k = i + 1; k < known_.size(); ++k) {
        if (fits(sum_of(known_[i], known_[k]))) return sum_of(known_[i], known_[k]).expression;
      }
    }
    for (const OpenSize& size : known_) try_multiple(size);
    for (size_t i = 0; i < known_.size(); ++i) {
      for (size_t k = i + 1; k < known_.size(); ++k) try_multiple(product_of(known_[i], known_[k]));
    }
    for (const OpenSize& size : known_) try_linear(size);
    return found_;
  }

 private:
  bool fits(const OpenSize& one) const {
    if (one.a != wanted_.a || one.b != wanted_.b) return false;
    int64_t right = 0, known = 0;
    for (size_t i = 0; i < wanted_.probes.size(); ++i) {
      if (!wanted_.probes[i]) continue;
      ++known;
      if (i >= one.probes.size() || !one.probes[i]) continue;
      if (*one.probes[i] != *wanted_.probes[i]) return false;
      ++right;
    }
    return known > 0 && right >= std::min(known, kMinProbes);
  }

  void try_it(const OpenSize& one) {
    if (found_.empty() && fits(one)) found_ = one.expression;
  }

  void try_multiple(const OpenSize& size) {
    if (size.a != 0 && wanted_.a % size.a == 0) try_it(multiple(wanted_.a / size.a, size));
  }

  // c e + d and (e + d) / c
  void try_linear(const OpenSize& size) {
    const int64_t step = size.b - size.a;
    if (step == 0) return;
    if ((wanted_.b - wanted_.a) % step == 0) {
      const int64_t factor = (wanted_.b - wanted_.a) / step;
      if (factor > 0) try_it(plus(wanted_.a - factor * size.a, multiple(factor, size)));
    }
    for (int64_t divisor = 2; divisor <= 64 && wanted_.a > 0 && found_.empty(); ++divisor) {
      // As strided layers round: with an offset of up to the divisor, or more for a window.
      for (int64_t offset = -divisor; offset < divisor; ++offset) {
        const bool is_above = size.a + offset >= 0 && size.b + offset >= 0;
        if (is_above && (size.a + offset) / divisor == wanted_.a) try_it(part(plus(offset, size), divisor));
      }
    }
  }

  const OpenSize& wanted_;
  std::vector<OpenSize> known_;
  std::string found_;
};

}  // namespace

std::string symbol_expression(const std::string& symbol) {
  return concat("Symbol('", symbol, "', positive=True, integer=True)");
}

std::string find_expression(const OpenSize& wanted, const std::vector<OpenSize>& known) {
  return Search(wanted, known).run();
}

OpenSize open_size(const tracing::Tracer& tracer, const Traced& tensor, int64_t dim) {
  const Traced size = tracer.size_of(tensor, dim);
  return {size.a.to_int(), size.b.to_int(), "", size.is_dynamic, tracer.probe_sizes(tensor, dim)};
}

}  // namespace tensord::jit::pt2
