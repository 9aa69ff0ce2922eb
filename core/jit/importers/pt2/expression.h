#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::jit::pt2 {

// An expression over sizes, as SymPy writes it ("2*s0 + 1", "Mul(Integer(2), Symbol('s0', positive=True))"), or a guard
// ("L['x'].size()[0] % 8 == 0").
struct Expression {
  enum class Kind {
    kInt,
    kFloat,
    kBool,
    kText,
    kSymbol,  // `text` is the name
    kSource,  // an argument of the model, path: the keys to it; call: "", "size", "stride" …, number: of the dimension
    kCall,    // text: the operation ("+", "//", "<=", "and", "max" …) over `operands`
  };
  Kind kind = Kind::kInt;
  int64_t number = 0;
  double real = 0;
  std::string text;
  std::string call;
  std::vector<std::string> path;
  std::vector<Expression> operands;
};

// Throws Error{kUnimplemented} "'TEXT': …" for any other text. Nesting is limited.
Expression parse_expression(std::string_view text);

// The names of all symbols, without duplicates.
std::vector<std::string> symbols_of(const Expression& expression);

}  // namespace tensord::jit::pt2
