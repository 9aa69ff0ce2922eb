#include "core/ops/schema.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "core/base/error.h"

namespace tensord::ops {
namespace {

// A recursive-descent parser of PyTorch's schema grammar. We write the schemas, so a mistake is a bug found at
// start-up; the message shows the rest of the string.
class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : text_(text) {}

  Schema parse() {
    Schema schema;
    schema.name = name("::");
    if (take(".")) schema.overload = name("");
    expect("(");
    bool keyword_only = false;
    while (!take(")")) {
      if (take("...")) {
        schema.is_vararg = true;
      } else if (take("*")) {
        keyword_only = true;
      } else {
        schema.arguments.push_back(argument());
        schema.arguments.back().is_keyword_only = keyword_only;
      }
      take(",");
    }
    expect("->");
    if (take("...")) {
      schema.is_vararg_return = true;
    } else if (take("(")) {
      while (!take(")")) {
        schema.returns.push_back(return_value());
        take(",");
      }
    } else {
      schema.returns.push_back(return_value());
    }
    skip();
    if (position_ != text_.size()) error("end of the schema");
    return schema;
  }

 private:
  [[noreturn]] void error(std::string_view expected) const {
    fail(ErrorCode::kInvalidArgument, "schema \"", text_, "\": expected ", expected, " at \"", text_.substr(position_),
         "\"");
  }
  void skip() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) error(token);
  }
  bool at_name() const {
    return position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_');
  }
  // A word; with `separator` "::", a qualified name.
  std::string name(std::string_view separator) {
    skip();
    std::string out;
    while (true) {
      while (at_name()) out += text_[position_++];
      if (separator.empty() || !text_.substr(position_).starts_with(separator)) break;
      out += separator;
      position_ += separator.size();
    }
    if (out.empty()) error("a name");
    return out;
  }

  AliasMark alias() {
    AliasMark mark;
    const size_t start = position_;
    if (!take("(")) return mark;
    skip();
    if (position_ < text_.size() &&
        (std::isalpha(static_cast<unsigned char>(text_[position_])) || text_[position_] == '*')) {
      mark.set = text_[position_++];
    }
    // "(a|b)" and "(c -> *)": the value may be aliased by anything, so it is a wildcard.
    while (take("|")) {
      mark.set = '*';
      ++position_;
    }
    if (take("!")) mark.is_write = true;
    if (take("->")) {
      expect("*");
      mark.set = '*';
    }
    if (!take(")") || mark.set == 0) {
      position_ = start;
      return {};
    }
    return mark;
  }

  TypePtr base_type(Argument& out) {
    if (take("(")) return parenthesised(out);
    const std::string word = name(".");
    if (word == "Dict" || word == "Future" || word == "Union" || word == "Optional" || word == "List") {
      std::vector<TypePtr> args;
      std::string close = take("(") ? ")" : (expect("["), "]");
      while (!take(close)) {
        Argument inner;
        args.push_back(type(inner));
        take(",");
      }
      if (word == "Dict" && args.size() == 2) return dict_type(args[0], args[1]);
      if (word == "Union") return union_type(args);
      if (args.size() != 1) error("one type argument");
      return word == "Future" ? future_type(args[0]) : word == "List" ? list_type(args[0]) : optional_type(args[0]);
    }
    return named(word, out);
  }

  TypePtr parenthesised(Argument&) {
    std::vector<TypePtr> members;
    while (!take(")")) {
      Argument inner;
      members.push_back(type(inner));
      take(",");
    }
    return tuple_type(std::move(members));
  }

  TypePtr named(const std::string& word, Argument& out) {
    if (word == "ScalarType" || word == "MemoryFormat" || word == "Layout" || word == "QScheme") {
      out.enum_name = word;
      return int_type();
    }
    if (word == "SymInt") return int_type();
    if (word == "Scalar") return number_type();
    if (word == "t" || word.starts_with("t_") ||
        (word.size() == 2 && word[0] == 't' && std::isdigit(static_cast<unsigned char>(word[1]))) || word == "key" ||
        word == "value" || word == "tVal" || word == "T" || word == "vs") {
      return var_type(word);
    }
    if (word == kAnyEnum) return enum_type(kAnyEnum, any_type());
    if (word == "AnyClassType" || word == "AnyListType" || word == "AnyTuple" || word == "AnyType") return any_type();
    if (word.starts_with("__torch__") || word.starts_with("tensord")) return opaque_type(word);
    return parse_annotation(word, nullptr);
  }

  TypePtr type(Argument& out) {
    TypePtr result = base_type(out);
    if (const AliasMark mark = alias(); mark.set) out.alias = mark;
    while (true) {
      if (take("?")) {
        result = optional_type(result);
      } else if (take("[")) {
        if (!take("]")) {
          out.fixed_list_size = integer();
          expect("]");
        }
        result = list_type(result);
        if (const AliasMark mark = alias(); mark.set) out.alias = mark;
      } else {
        return result;
      }
    }
  }

  int64_t integer() {
    skip();
    int64_t value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (status != std::errc()) error("a number");
    position_ += static_cast<size_t>(end - begin);
    return value;
  }

  Argument argument() {
    Argument out;
    out.type = type(out);
    skip();
    out.name = name("");
    if (take("=")) out.default_value = literal(out);
    return out;
  }
  Argument return_value() {
    Argument out;
    out.type = type(out);
    skip();
    if (at_name()) out.name = name("");
    return out;
  }

  static Value typed_number(const Type& type, double number, bool is_integer) {
    const Type& plain = type.kind() == TypeKind::kOptional ? *type.element() : type;
    if (is_integer && plain.kind() != TypeKind::kFloat) return Value(static_cast<int64_t>(number));
    return Value(number);
  }

  Value literal(const Argument& argument) {
    skip();
    const Type& type = *argument.type;
    if (take("None")) return {};
    if (take("True")) return true;
    if (take("False")) return false;
    if (take("strided") || take("contiguous_format")) return 0;
    if (take("Mean")) return 1;  // of `int reduction`
    if (take("float32") || take("float")) return DType::kFloat32;
    if (take("long")) return DType::kInt64;
    if (take("inf")) return HUGE_VAL;
    if (take("[")) {
      const Type& list = type.kind() == TypeKind::kOptional ? *type.element() : type;
      List values = make_list(list.element());
      while (!take("]")) {
        Argument inner;
        inner.type = list.element();
        values->items.push_back(literal(inner));
        take(",");
      }
      return values;
    }
    if (text_[position_] == '"' || text_[position_] == '\'') return string_literal();
    return number_literal(argument);
  }

  static char unescaped(char letter) {
    switch (letter) {
      case 'n': return '\n';
      case 't': return '\t';
      case 'r': return '\r';
      case 'f': return '\f';
      case 'v': return '\v';
      default: return letter;
    }
  }

  Value string_literal() {
    const char quote = text_[position_++];
    std::string out;
    while (position_ < text_.size() && text_[position_] != quote) {
      char c = text_[position_++];
      if (c == '\\' && position_ < text_.size()) {
        c = unescaped(text_[position_++]);
      }
      out += c;
    }
    ++position_;
    return out;
  }

  Value number_literal(const Argument& argument) {
    const std::string rest(text_.substr(position_));
    char* end = nullptr;
    const double number = std::strtod(rest.c_str(), &end);
    const auto length = static_cast<size_t>(end - rest.c_str());
    if (length == 0) error("a default value");
    position_ += length;
    const bool is_integer = rest.substr(0, length).find_first_of(".eE") == std::string::npos;
    if (argument.fixed_list_size > 0) {
      const Type& list = argument.type->kind() == TypeKind::kOptional ? *argument.type->element() : *argument.type;
      List values = make_list(list.element());
      values->items.assign(static_cast<size_t>(argument.fixed_list_size),
                           typed_number(*list.element(), number, is_integer));
      return values;
    }
    return typed_number(*argument.type, number, is_integer);
  }

  std::string_view text_;
  size_t position_ = 0;
};

std::string alias_text(const AliasMark& mark) {
  if (!mark.set) return "";
  return std::string("(") + mark.set + (mark.is_write ? "!)" : ")");
}

// In schema syntax ("int[2]?"); Type::str returns annotation syntax.
std::string type_string(const Type& type, const Argument& argument) {
  switch (type.kind()) {
    case TypeKind::kOptional: return type_string(*type.element(), argument) + "?";
    case TypeKind::kList: {
      Argument plain = argument;
      plain.alias = {};
      return type_string(*type.element(), plain) + "[" +
             (argument.fixed_list_size ? std::to_string(argument.fixed_list_size) : "") + "]" +
             alias_text(argument.alias);
    }
    case TypeKind::kNumber: return "Scalar";
    case TypeKind::kTuple: {
      std::string out = "(";
      for (const TypePtr& member : type.contained())
        out += (out.size() > 1 ? ", " : "") + type_string(*member, Argument());
      return out + ")";
    }
    case TypeKind::kDict:
      return "Dict(" + type_string(*type.contained()[0], {}) + ", " + type_string(*type.contained()[1], {}) + ")" +
             alias_text(argument.alias);
    case TypeKind::kFuture: return "Future(" + type_string(*type.element(), {}) + ")";
    default: break;
  }
  return (argument.enum_name.empty() ? type.str() : argument.enum_name) + alias_text(argument.alias);
}

std::string literal_text(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::kNone: return "None";
    case Value::Tag::kBool: return value.to_bool() ? "True" : "False";
    case Value::Tag::kInt: return std::to_string(value.to_int());
    case Value::Tag::kString: return '"' + value.to_string() + '"';
    case Value::Tag::kFloat: {
      char buffer[40];
      std::snprintf(buffer, sizeof(buffer), "%.17g", value.to_float());
      std::string out = buffer;
      return out.find_first_of(".en") == std::string::npos ? out + "." : out;
    }
    case Value::Tag::kComplex: return to_string(value.to_complex());
    case Value::Tag::kList: {
      std::string out = "[";
      for (const Value& item : value.to_list()->items) out += (out.size() > 1 ? ", " : "") + literal_text(item);
      return out + "]";
    }
    default: return value.tag_name();
  }
}

}  // namespace

Schema parse_schema(std::string_view text) { return SchemaParser(text).parse(); }

std::string Schema::str() const {
  std::string out = full_name() + "(";
  bool keyword_only = false;
  for (const Argument& argument : arguments) {
    if (out.back() != '(') out += ", ";
    if (argument.is_keyword_only && !keyword_only) out += "*, ";
    keyword_only = argument.is_keyword_only;
    out += type_string(*argument.type, argument) + " " + argument.name;
    if (argument.default_value) out += "=" + literal_text(*argument.default_value);
  }
  if (is_vararg) out += out.back() == '(' ? "..." : ", ...";
  out += ") -> ";
  if (is_vararg_return) return out + "...";
  if (returns.size() == 1) return out + type_string(*returns[0].type, returns[0]);
  out += "(";
  for (const Argument& value : returns) {
    if (out.back() != '(') out += ", ";
    out += type_string(*value.type, value) + (value.name.empty() ? "" : " " + value.name);
  }
  return out + ")";
}

bool Schema::is_mutating() const {
  for (const Argument& argument : arguments) {
    if (argument.alias.is_write) return true;
  }
  return false;
}

bool Schema::has_alias_return() const {
  for (const Argument& value : returns) {
    if (value.alias.set) return true;
  }
  return false;
}

int Schema::find_argument(std::string_view name) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace tensord::ops
