#pragma once

#include <initializer_list>

#include "core/jit/frontend/ast.h"
#include "core/jit/frontend/token_stream.h"

namespace tensord::jit {

// A recursive descent parser for expressions; it adds nodes to the tree. Both the recursion and the depth of the tree
// are limited.
class ExpressionParser {
 public:
  ExpressionParser(TokenStream& tokens, SourceTree& tree) : tokens_(tokens), tree_(tree) {}

  const Expr* expression();
  // Parses one expression, or a tuple: "a, b" and "a,". Stops before any of = : newline.
  const Expr* expression_list();
  // Does the same for the targets of a for loop, which end at "in".
  const Expr* target_list();

  // Counts one level of nested syntax for its lifetime.
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
  // An expression of binary operators whose precedence is at least `lowest`.
  const Expr* operators(int lowest);
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
