#include "core/jit/frontend/parser.h"

#include "core/base/cancellation.h"
#include "core/jit/frontend/expression_parser.h"

namespace tensord::jit {
namespace {

// Limits the time to search for duplicate parameters.
constexpr size_t kMaxParams = 1000;

// Parses statements, functions and classes.
class Parser {
 public:
  explicit Parser(SourceTree& tree) : tree_(tree), tokens_(tree.source), expressions_(tokens_, tree) {}

  void run() {
    while (!tokens_.is(TokenKind::kEnd)) {
      if (tokens_.take(TokenKind::kNewline)) continue;
      decorators();
      if (tokens_.is("def")) {
        tree_.functions.add(function());
      } else if (tokens_.is("class")) {
        tree_.classes.add(class_def());
      } else if (tokens_.is("import") || tokens_.is("from") || tokens_.is(TokenKind::kString)) {
        skip_line();
      } else {
        tokens_.fail("expected a class or a function");
      }
    }
  }

 private:
  void skip_line() {
    while (!tokens_.is(TokenKind::kNewline) && !tokens_.is(TokenKind::kEnd)) tokens_.next();
  }
  void decorators() {
    while (tokens_.is("@")) {
      skip_line();
      tokens_.take(TokenKind::kNewline);
    }
  }
  std::string_view name(const char* what) {
    if (!tokens_.is(TokenKind::kName)) tokens_.fail(std::string("expected ") + what);
    return tokens_.text(tokens_.next());
  }

  const FunctionDef* function() {
    const ExpressionParser::Level level(expressions_);
    tokens_.expect("def");
    FunctionDef& def = tree_.function_defs.emplace_back();
    def.begin = tokens_.peek().begin;
    def.name = name("the name of a function");
    tokens_.expect("(");
    bool is_keyword_only = false;
    while (!tokens_.is(")")) {
      if (tokens_.take("*")) {
        is_keyword_only = true;
      } else {
        parameter(def, is_keyword_only);
      }
      if (!tokens_.take(",")) break;
    }
    tokens_.expect(")");
    if (tokens_.take("->")) def.return_annotation = expressions_.expression();
    def.body = suite();
    return &def;
  }

  void parameter(FunctionDef& def, bool is_keyword_only) {
    if (def.params.size() >= kMaxParams) tokens_.fail("too many parameters");
    ParamDef param;
    param.is_keyword_only = is_keyword_only;
    param.begin = tokens_.peek().begin;
    param.name = name("the name of a parameter");
    if (tokens_.take(":")) param.annotation = expressions_.expression();
    if (tokens_.take("=")) param.default_value = expressions_.expression();
    for (const ParamDef& other : def.params) {
      if (other.name == param.name)
        tree_.source.fail(param.begin, "parameter '" + std::string(param.name) + "' appears twice");
    }
    def.params.push_back(param);
  }

  const ClassDef* class_def() {
    tokens_.expect("class");
    ClassDef& def = tree_.class_defs.emplace_back();
    def.begin = tokens_.peek().begin;
    def.name = name("the name of a class");
    if (tokens_.take("(")) {
      while (!tokens_.is(")")) {
        std::string_view base = name("the name of a class");
        while (tokens_.take(".")) base = name("the name of a class");
        def.bases.push_back(base);
        if (!tokens_.take(",")) break;
      }
      tokens_.expect(")");
    }
    tokens_.expect(":");
    if (!tokens_.take(TokenKind::kNewline)) {
      tokens_.expect("pass");
      return &def;
    }
    if (!tokens_.take(TokenKind::kIndent)) tokens_.fail("expected an indented block");
    while (!tokens_.take(TokenKind::kDedent)) {
      if (tokens_.is(TokenKind::kEnd)) tokens_.fail("the class ends too soon");
      class_member(def);
    }
    return &def;
  }

  void class_member(ClassDef& def) {
    if (tokens_.take(TokenKind::kNewline) || tokens_.take(TokenKind::kString)) return;
    decorators();
    if (tokens_.is("def")) {
      def.methods.add(function());
      return;
    }
    if (tokens_.take("pass")) return;
    FieldDef field;
    field.begin = tokens_.peek().begin;
    field.name = name("a field or a method");
    if (field.name == "__annotations__" && tokens_.take("[")) {
      if (!tokens_.is(TokenKind::kString)) tokens_.fail("expected the name of an attribute in quotes");
      field.name = decode_string(tree_.source, tokens_.next());
      tokens_.expect("]");
      tokens_.expect("=");
      field.annotation = expressions_.expression();
    } else {
      if (tokens_.take(":")) field.annotation = expressions_.expression();
      if (tokens_.take("=")) field.value = expressions_.expression_list();
      if (!field.annotation && !field.value) tokens_.fail("expected ':' or '='");
    }
    def.fields.push_back(std::move(field));
    end_of_statement();
  }

  void end_of_statement() {
    if (tokens_.take(";") || tokens_.take(TokenKind::kNewline) || tokens_.is(TokenKind::kEnd)) return;
    tokens_.fail("expected the end of the line");
  }

  // ":" and an indented block, or statements on the same line.
  std::vector<const Stmt*> suite() {
    tokens_.expect(":");
    std::vector<const Stmt*> out;
    if (!tokens_.take(TokenKind::kNewline)) {
      do {
        if (const Stmt* stmt = simple_statement()) out.push_back(stmt);
      } while (tokens_.take(";") && !tokens_.is(TokenKind::kNewline));
      if (!tokens_.take(TokenKind::kNewline) && !tokens_.is(TokenKind::kEnd))
        tokens_.fail("expected the end of the line");
      return out;
    }
    if (!tokens_.take(TokenKind::kIndent)) tokens_.fail("expected an indented block");
    while (!tokens_.take(TokenKind::kDedent)) {
      if (tokens_.is(TokenKind::kEnd)) tokens_.fail("the block ends too soon");
      if (tokens_.take(TokenKind::kNewline)) continue;
      if (const Stmt* stmt = statement()) out.push_back(stmt);
    }
    return out;
  }

  Stmt& make(StmtKind kind) {
    Stmt& stmt = tree_.stmts.emplace_back();
    stmt.kind = kind;
    stmt.begin = tokens_.peek().begin;
    return stmt;
  }

  // Null for a statement without effect, such as a docstring.
  const Stmt* statement() {
    check_work_cancelled();
    const ExpressionParser::Level level(expressions_);
    if (tokens_.is("if")) return if_statement();
    if (tokens_.is("for")) return for_statement();
    if (tokens_.is("while")) {
      Stmt& stmt = make(StmtKind::kWhile);
      tokens_.next();
      stmt.value = expressions_.expression();
      stmt.body = suite();
      return &stmt;
    }
    if (tokens_.is("with")) return with_statement();
    decorators();
    if (tokens_.is("def")) {
      Stmt& stmt = make(StmtKind::kDef);
      stmt.function = function();
      return &stmt;
    }
    const Stmt* stmt = simple_statement();
    end_of_statement();
    return stmt;
  }

  const Stmt* if_statement() {
    const ExpressionParser::Level level(expressions_);
    Stmt& stmt = make(StmtKind::kIf);
    tokens_.next();
    stmt.value = expressions_.expression();
    stmt.body = suite();
    if (tokens_.is("elif")) {
      stmt.orelse.push_back(if_statement());
    } else if (tokens_.take("else")) {
      stmt.orelse = suite();
    }
    return &stmt;
  }

  const Stmt* for_statement() {
    Stmt& stmt = make(StmtKind::kFor);
    tokens_.next();
    stmt.target = expressions_.target_list();
    tokens_.expect("in");
    stmt.value = expressions_.expression_list();
    stmt.body = suite();
    return &stmt;
  }

  const Stmt* with_statement() {
    Stmt& stmt = make(StmtKind::kWith);
    tokens_.next();
    stmt.value = expressions_.expression();
    if (tokens_.take("as")) stmt.target = expressions_.target_list();
    stmt.body = suite();
    return &stmt;
  }

  const Stmt* simple_statement() {
    if (tokens_.is("return")) {
      Stmt& stmt = make(StmtKind::kReturn);
      tokens_.next();
      if (!tokens_.is(TokenKind::kNewline) && !tokens_.is(TokenKind::kEnd) && !tokens_.is(";")) {
        stmt.value = expressions_.expression_list();
      }
      return &stmt;
    }
    if (tokens_.take("pass")) return nullptr;
    if (tokens_.is("break") || tokens_.is("continue")) {
      Stmt& stmt = make(tokens_.is("break") ? StmtKind::kBreak : StmtKind::kContinue);
      tokens_.next();
      return &stmt;
    }
    if (tokens_.is("assert")) {
      Stmt& stmt = make(StmtKind::kAssert);
      tokens_.next();
      stmt.value = expressions_.expression();
      if (tokens_.take(",")) stmt.target = expressions_.expression();
      return &stmt;
    }
    if (tokens_.is("raise")) {
      Stmt& stmt = make(StmtKind::kRaise);
      tokens_.next();
      stmt.value = expressions_.expression();
      return &stmt;
    }
    return assignment();
  }

  const Stmt* assignment() {
    static constexpr std::string_view kAugmented[] = {
        "+=", "-=", "*=", "/=", "//=", "%=", "**=", "@=", "&=", "|=", "^=", "<<=", ">>="};
    Stmt& stmt = make(StmtKind::kExpr);
    const Expr* first = expressions_.expression_list();
    stmt.value = first;
    if (tokens_.take(":")) {
      stmt.kind = StmtKind::kAssign;
      stmt.target = first;
      stmt.annotation = expressions_.expression();
      stmt.value = tokens_.take("=") ? expressions_.expression_list() : nullptr;
    } else if (tokens_.take("=")) {
      stmt.kind = StmtKind::kAssign;
      stmt.target = first;
      stmt.value = expressions_.expression_list();
      if (tokens_.is("=")) tokens_.fail("chained assignments are not supported");
    } else {
      for (const std::string_view op : kAugmented) {
        if (!tokens_.take(op)) continue;
        stmt.kind = StmtKind::kAssign;
        stmt.text = op.substr(0, op.size() - 1);
        stmt.target = first;
        stmt.value = expressions_.expression_list();
        break;
      }
    }
    const bool is_docstring = stmt.kind == StmtKind::kExpr && first->kind == ExprKind::kString;
    return is_docstring || (stmt.kind == StmtKind::kExpr && first->kind == ExprKind::kEllipsis) ? nullptr : &stmt;
  }

  SourceTree& tree_;
  TokenStream tokens_;
  ExpressionParser expressions_;
};

}  // namespace

const FieldDef* ClassDef::find_field(std::string_view field) const {
  for (const FieldDef& def : fields) {
    if (def.name == field) return &def;
  }
  return nullptr;
}

std::unique_ptr<const SourceTree> parse_source(SourceText source) {
  auto tree = std::make_unique<SourceTree>(std::move(source));
  Parser(*tree).run();
  return tree;
}

}  // namespace tensord::jit
