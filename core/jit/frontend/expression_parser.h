#pragma once

#include <initializer_list>

#include "core/jit/frontend/ast.h"
#include "core/jit/frontend/token_stream.h"

namespace tensord::jit {

// Recursive descent over expressions; nodes go into the tree. Depth is bounded, both of the
// recursion and of the trees it makes.
class ExpressionParser {
 public:
  ExpressionParser(TokenStream& tokens, SourceTree& tree) : tokens_(tokens), tree_(tree) {}

  const Expr* expression();
  // One expression, or a tuple of several: "a, b" and "a,". Stops before any of = : newline.
  const Expr* expression_list();
  // The same for targets of for loops, which end at "in".
  const Expr* target_list();

  // Counts levels of nested syntax while it lives.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  Expr& make(ExprKind kind, uint32_t begin);
  const Expr* finish(Expr& expr);
  const Expr* binary(std::string_view op, const Expr* left, const Expr* right);
  const Expr* operators(size_t precedence);
  const Expr* or_test();
  const Expr* and_test();
  const Expr* not_test();
  const Expr* comparison();
  std::string_view comparison_operator();
  const Expr* unary();
  const Expr* power();
  const Expr* postfix();
  const Expr* call(const Expr* callee);
  const Expr* subscript(const Expr* base);
  const Expr* subscript_item();
  const Expr* atom();
  const Expr* number();
  const Expr* strings();
  const Expr* parenthesized();
  const Expr* list();
  const Expr* dict();
  bool at_list_end() const;

  TokenStream& tokens_;
  SourceTree& tree_;
  int level_ = 0;
};

}  // namespace tensord::jit
