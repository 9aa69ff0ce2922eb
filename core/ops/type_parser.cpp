#include <cctype>

#include "core/base/error.h"
#include "core/ops/type.h"

namespace tensord::ops {
namespace {

// A recursive-descent parser of annotation syntax; its depth is bounded because archives are untrusted.
class AnnotationParser {
 public:
  AnnotationParser(std::string_view text, const TypeResolver& resolver) : text_(text), resolver_(resolver) {}

  TypePtr parse_all() {
    TypePtr type = parse(0);
    skip_space();
    if (position_ != text_.size()) error("unexpected text after the type");
    return type;
  }

 private:
  static constexpr int kMaxDepth = 64;

  [[noreturn]] void error(std::string_view what) const {
    fail(ErrorCode::kInvalidArgument, "type \"", text_.substr(0, 200), "\": ", what, " at position ", position_);
  }
  void skip_space() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) ++position_;
  }
  bool take(char c) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  std::string name() {
    skip_space();
    const size_t begin = position_;
    while (position_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[position_])) ||
                                        text_[position_] == '_' || text_[position_] == '.')) {
      ++position_;
    }
    if (begin == position_) error("expected a type");
    return std::string(text_.substr(begin, position_ - begin));
  }
  std::vector<TypePtr> arguments(int depth) {
    if (!take('[')) error("expected '['");
    std::vector<TypePtr> out;
    skip_space();
    if (take('(')) {  // Tuple[()]
      if (!take(')') || !take(']')) error("expected ')]'");
      return out;
    }
    do {
      if (take(']')) return out;
      out.push_back(parse(depth + 1));
    } while (take(','));
    if (!take(']')) error("expected ']'");
    return out;
  }

  TypePtr parse(int depth) {
    if (depth > kMaxDepth) error("too deeply nested");
    const std::string id = name();
    if (id == "Optional" || id == "List" || id == "Future" || id == "Final" || id == "Dict") {
      const std::vector<TypePtr> args = arguments(depth);
      if (args.size() != (id == "Dict" ? 2u : 1u)) error("wrong number of type arguments");
      if (id == "Optional") return optional_type(args[0]);
      if (id == "List") return list_type(args[0]);
      if (id == "Future") return future_type(args[0]);
      return id == "Dict" ? dict_type(args[0], args[1]) : args[0];
    }
    if (id == "Tuple") return tuple_type(arguments(depth));
    if (id == "Union") return union_type(arguments(depth));
    return named(id);
  }

  TypePtr named(const std::string& id) {
    static constexpr struct {
      const char* name;
      TypeKind kind;
    } kNames[] = {{"Tensor", TypeKind::kTensor},
                  {"int", TypeKind::kInt},
                  {"float", TypeKind::kFloat},
                  {"bool", TypeKind::kBool},
                  {"str", TypeKind::kString},
                  {"complex", TypeKind::kComplex},
                  {"None", TypeKind::kNone},
                  {"NoneType", TypeKind::kNone},
                  {"Any", TypeKind::kAny},
                  {"number", TypeKind::kNumber},
                  {"Scalar", TypeKind::kNumber},
                  {"Device", TypeKind::kDevice},
                  {"torch.Tensor", TypeKind::kTensor},
                  {"torch.device", TypeKind::kDevice},
                  {"Generator", TypeKind::kGenerator},
                  {"Storage", TypeKind::kStorage},
                  {"Stream", TypeKind::kStream}};
    for (const auto& entry : kNames) {
      if (id == entry.name) return simple_type(entry.kind);
    }
    // Bare names, which saved code has after isinstance(x, list), are containers of anything.
    if (id == "list") return list_type(simple_type(TypeKind::kAny));
    if (id == "dict") return dict_type(simple_type(TypeKind::kAny), simple_type(TypeKind::kAny));
    if (id == "tuple") return named_tuple_type("tuple", {}, {});
    if (TypePtr type = resolver_ ? resolver_(id) : nullptr) return type;
    error("type " + id + " is not known");
  }

  std::string_view text_;
  const TypeResolver& resolver_;
  size_t position_ = 0;
};

}  // namespace

TypePtr parse_annotation(std::string_view text, const TypeResolver& resolver) {
  return AnnotationParser(text, resolver).parse_all();
}

}  // namespace tensord::ops
