#include "core/ops/registry.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/ops/alias.h"
#include "core/ops/attributes/autocast.h"
#include "core/ops/attributes/saved_for.h"
#include "core/ops/declared.h"
#include "core/ops/dispatch_table.h"

namespace tensord::ops {
namespace {

// A change to an operator's record from outside of its block.
struct Pending {
  std::string op;
  const char* what;
  std::function<void(Op&)> change;
  std::optional<CppTypes> types;
};

class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  Op* add(Schema schema) {
    auto op = std::make_unique<Op>();
    op->is_view = schema.has_alias_return() && !schema.is_mutating();
    op->is_pure = !schema.is_mutating();
    op->schema = std::move(schema);
    ops_.push_back(std::move(op));
    return ops_.back().get();
  }
  void add_pending(Pending pending) { pending_.push_back(std::move(pending)); }
  TableBuilder& tables() { return tables_; }
  void add_alias(std::string alias, std::string name) { aliases_.emplace_back(std::move(alias), std::move(name)); }
  // Registrations run before main, where no exception can be caught.
  void report(const std::string& problem) { problems_ += (problems_.empty() ? "" : "\n") + problem; }

  void freeze() {
    std::call_once(frozen_, [this] {
      for (const auto& op : ops_) {
        const std::string name = op->schema.full_name();
        if (!by_full_name_.emplace(name, op.get()).second) report(name + " is registered twice");
        overloads_[op->schema.name].push_back(op.get());
      }
      check_declared();
      join_aliases();
      join_pending();
      tables_.build(ops_, [this](const std::string& problem) { report(problem); });
      std::ranges::sort(ops_, {}, [](const auto& op) { return op->schema.full_name(); });
    });
    if (!problems_.empty()) fail(ErrorCode::kInternal, problems_);
  }

  const Op* find(std::string_view full_name) {
    freeze();
    const auto it = by_full_name_.find(std::string(full_name));
    return it == by_full_name_.end() ? nullptr : it->second;
  }
  std::span<const Op* const> overloads(std::string_view name) {
    freeze();
    const auto it = overloads_.find(std::string(name));
    if (it == overloads_.end()) return {};
    return it->second;
  }
  std::vector<const Op*> all() {
    freeze();
    std::vector<const Op*> out;
    for (const auto& op : ops_) out.push_back(op.get());
    return out;
  }

 private:
  // Programs without kernels have none of the operators that these declare.
  void check_declared() {
    std::string missing;
    size_t count = 0;
    for (const Declared& declared : declared_operators()) {
      if (by_full_name_.contains(std::string(declared.name()))) continue;
      missing +=
          concat(missing.empty() ? "" : "\n", declared.name(), " is declared in ", declared.file, " without an OP");
      ++count;
    }
    if (count != 0 && count != declared_operators().size()) report(missing);
  }

  void join_aliases() {
    for (const auto& [alias, name] : aliases_) {
      if (overloads_.find(name) == overloads_.end())
        report(alias + " is a second name of " + name + ", which is not an operator");
      for (const char* form : {"", "_"}) {
        const auto it = overloads_.find(name + form);
        if (it == overloads_.end()) continue;
        const std::vector<const Op*> targets = it->second;
        for (const Op* op : targets) {
          const std::string full_name = alias + form + op->schema.full_name().substr(op->schema.name.size());
          if (!by_full_name_.emplace(full_name, by_full_name_.at(op->schema.full_name())).second)
            report(full_name + " is registered twice");
        }
        overloads_[alias + form] = targets;
      }
    }
  }

  void join_pending() {
    for (const Pending& pending : pending_) {
      const auto it = by_full_name_.find(pending.op);
      if (it == by_full_name_.end()) {
        report(concat(pending.what, " is registered for ", pending.op, ", which is not an operator"));
        continue;
      }
      if (pending.types && !are_arguments_of(it->second->schema, *pending.types)) {
        report(concat(pending.what, " of ", it->second->schema.str(), " takes (", to_string(*pending.types), ")"));
        continue;
      }
      try {
        pending.change(*it->second);
      } catch (const Error& error) {
        report(error.what());
      }
    }
    pending_.clear();
  }

  std::once_flag frozen_;
  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<std::pair<std::string, std::string>> aliases_;
  std::vector<Pending> pending_;
  TableBuilder tables_;
  std::unordered_map<std::string, Op*> by_full_name_;
  std::unordered_map<std::string, std::vector<const Op*>> overloads_;
  std::string problems_;
};

// Whether a C++ type's schema() corresponds to the schema's type.
bool unbox_matches(const std::string& cpp_schema, const TypePtr& type, const std::string& enum_name) {
  if (cpp_schema == "*") return true;
  if (cpp_schema == "List") return type->kind() == TypeKind::kList;
  if (cpp_schema == "Dict") return type->kind() == TypeKind::kDict;
  if (cpp_schema == "Tuple") return type->kind() == TypeKind::kTuple;
  for (const char* wrapper : {"Optional[", "List["}) {
    const size_t length = std::string_view(wrapper).size();
    if (!cpp_schema.starts_with(wrapper)) continue;
    const bool is_optional = wrapper[0] == 'O';
    if (type->kind() != (is_optional ? TypeKind::kOptional : TypeKind::kList)) return false;
    return unbox_matches(cpp_schema.substr(length, cpp_schema.size() - length - 1), type->element(), enum_name);
  }
  if (cpp_schema == "ScalarType") return type->kind() == TypeKind::kInt && enum_name == "ScalarType";
  return cpp_schema == type->str();
}

}  // namespace

bool are_arguments_of(const Schema& schema, CppTypes types) {
  return std::ranges::equal(types, schema.arguments, [](std::string (*type)(), const Argument& argument) {
    return unbox_matches(type(), argument.type, argument.enum_name);
  });
}

std::string to_string(CppTypes types) {
  std::string out;
  for (std::string (*type)() : types) out += (out.empty() ? "" : ", ") + type();
  return out;
}

std::vector<TensorMeta> detail::single(TensorMeta meta) {
  std::vector<TensorMeta> out;
  out.push_back(std::move(meta));
  return out;
}

void derive_kernels(DerivedKernels derived) { Registry::instance().tables().derive(std::move(derived)); }

void set_kernels(Functionality functionality, const KernelFunction* (*choose)(const Op& op)) {
  Registry::instance().tables().set_kernels(functionality, choose);
}

const Op* find_op(std::string_view full_name) { return Registry::instance().find(full_name); }

const Op& get_op(std::string_view full_name) {
  const Op* op = find_op(full_name);
  if (!op) fail(ErrorCode::kUnimplemented, "operator ", full_name, " is not supported");
  return *op;
}

std::span<const Op* const> find_overloads(std::string_view name) { return Registry::instance().overloads(name); }
std::vector<const Op*> all_ops() { return Registry::instance().all(); }

// --- builders

namespace {

// What follows a schema: "inplace.Scalar, out, autocast cuda f32".
struct Marks {
  std::string_view inplace;
  bool has_out = false;
  Autocast autocast;
};

Marks marks_of(std::string_view text) {
  Marks marks;
  while (!text.empty()) {
    const size_t end = std::min(text.find(", "), text.size());
    const std::string_view mark = text.substr(0, end);
    text.remove_prefix(std::min(end + 2, text.size()));
    if (mark == "inplace" || mark.starts_with("inplace.")) {
      marks.inplace = mark;
    } else if (mark == "out") {
      marks.has_out = true;
    } else {
      check(mark.starts_with("autocast "), "unknown mark '", mark, "'");
      marks.autocast.add(mark.substr(mark.find(' ') + 1));
    }
  }
  return marks;
}

}  // namespace

OpBuilder::OpBuilder(std::string_view name, const char* file, int line) : op_(nullptr), file_(file), line_(line) {
  try {
    const std::string_view text = line_of(name), forms = text.substr(std::min(text.find("; "), text.size()));
    op_ = Registry::instance().add(parse_schema(text.substr(0, text.size() - forms.size())));
    const Marks marks = marks_of(forms.substr(std::min<size_t>(2, forms.size())));
    if (!marks.inplace.empty()) add_inplace_form(marks.inplace);
    if (marks.has_out) add_out_form();
    if (!(marks.autocast == Autocast())) set<Autocast>(marks.autocast);
  } catch (const Error& error) {
    Registry::instance().report(concat(file, ":", line, ": ", error.what()));
    static Op discarded;
    op_ = &discarded;
  }
}

void OpBuilder::check_parameters(CppTypes types, const char* what) {
  if (are_arguments_of(op_->schema, types)) return;
  Registry::instance().report(
      concat(file_, ":", line_, ": ", what, " of ", op_->schema.str(), " takes (", to_string(types), ")"));
}

OpBuilder& OpBuilder::set_infer(InferFn infer, CppTypes types) {
  check_parameters(types, "infer");
  op_->infer = std::move(infer);
  return *this;
}

OpBuilder& OpBuilder::set_impl(ReturnFn function, std::optional<CppTypes> types, const std::source_location& origin) {
  Registry::instance().tables().set_function(*op_, {.function = std::move(function), .origin = origin});
  if (types) check_parameters(*types, "impl");
  return *this;
}

OpBuilder& OpBuilder::saves(const char* names) {
  if (!set_saved(*op_, names)) {
    Registry::instance().report(
        concat(file_, ":", line_, ": saves(\"", names, "\") names what ", op_->schema.str(), " does not have"));
  }
  return *this;
}

OpBuilder& OpBuilder::composite() {
  op_->is_composite = true;
  return *this;
}
OpBuilder& OpBuilder::constant_result() {
  op_->is_constant_result = true;
  return *this;
}
void OpBuilder::report_second_attribute() const {
  Registry::instance().report(concat(file_, ":", line_, ": ", op_->name(), " has two attributes of one kind"));
}

void OpBuilder::add_inplace_form(std::string_view mark) const {
  Schema schema = op_->schema;
  schema.name += "_";
  if (const size_t dot = mark.find('.'); dot != std::string_view::npos) schema.overload = mark.substr(dot + 1);
  schema.arguments[0].alias = {'a', true};
  schema.returns = {schema.arguments[0]};
  schema.returns[0].name.clear();
  Op* derived = Registry::instance().add(std::move(schema));
  derived->base = op_;
  derived->is_pure = false;
}

void OpBuilder::add_out_form() const {
  Schema schema = op_->schema;
  schema.overload = schema.overload.empty() || schema.overload == "Tensor" ? "out" : schema.overload + "_out";
  Argument out;
  out.name = "out";
  out.type = tensor_type();
  out.alias = {'a', true};
  out.is_keyword_only = true;
  schema.arguments.push_back(out);
  out.name.clear();
  schema.returns = {out};
  Op* derived = Registry::instance().add(std::move(schema));
  derived->base = op_;
  derived->is_pure = false;
}

OpBuilder& OpBuilder::writes_when(const char* argument) {
  op_->writes_when = op_->schema.find_argument(argument);
  if (op_->writes_when < 0) Registry::instance().report(concat(file_, ":", line_, ": there is no argument ", argument));
  return *this;
}

OpBuilder& OpBuilder::impure() {
  op_->is_pure = false;
  return *this;
}
OpBuilder& OpBuilder::random() {
  op_->is_random = true;
  op_->is_pure = false;
  return *this;
}
OpBuilder& OpBuilder::pointwise() {
  op_->is_pointwise = true;
  return *this;
}
OpBuilder& OpBuilder::reduction() {
  op_->is_reduction = true;
  return *this;
}
OpBuilder& OpBuilder::dynamic_shape() {
  op_->has_dynamic_shape = true;
  return *this;
}
OpBuilder& OpBuilder::keeps_layout() {
  op_->keeps_layout = true;
  return *this;
}

OpBuilder& OpBuilder::shape_only() {
  op_->reads_only_shape = true;
  return *this;
}
OpBuilder& OpBuilder::kind(OpKind kind) {
  op_->kind = kind;
  op_->is_kind_marked = true;
  return *this;
}
void join_to_record(std::string op, const char* what, std::function<void(Op&)> change, std::optional<CppTypes> types) {
  Registry::instance().add_pending({std::move(op), what, std::move(change), types});
}

PackBuilder::PackBuilder(const char* op, DeviceKind device, PackFn function) {
  join_to_record(op, "a packed form", [device, function = std::move(function)](Op& record) {
    record.pack[static_cast<size_t>(device)] = function;
  });
}

AliasBuilder::AliasBuilder(const char* alias, const char* name) { Registry::instance().add_alias(alias, name); }

PrepareBuilder::PrepareBuilder(const char* op, DeviceKind device, PrepareFn function) {
  join_to_record(op, "a prepared form", [device, function = std::move(function)](Op& record) {
    record.prepare[static_cast<size_t>(device)] = function;
  });
}

// --- IMPL

namespace {

template <class Fn>
void for_each_name(std::string_view names, Fn&& fn) {
  std::istringstream words{std::string(names)};
  for (std::string name; words >> name;) fn(name);
}

}  // namespace

void ImplBuilder::add_fill(FillFn fill, CppTypes types, const std::source_location& origin) {
  add({.fill = std::move(fill), .origin = origin}, types);
}

void ImplBuilder::add_function(ReturnFn function, std::optional<CppTypes> types, const std::source_location& origin) {
  add({.function = std::move(function), .origin = origin}, types);
}

void ImplBuilder::add(const KernelFunction& kernel, std::optional<CppTypes> types) {
  // One function for complex numbers may serve operators with more arguments.
  if (key_.layouts.has(Functionality::kComplex)) types = std::nullopt;
  for_each_name(names_, [&](const std::string& name) {
    join_to_record(
        name, "the kernel",
        [key = key_, kernel](Op& record) { Registry::instance().tables().set(record, key, kernel); }, types);
  });
  if (key_.is_composite) set_rule(ComplexGradient::kOfCalls, nullptr);
}

ImplBuilder::ImplBuilder(std::string_view names, DispatchKey key, SameAsDense) : names_(names), key_(key) {
  for_each_name(names_, [](const std::string& name) {
    join_to_record(name, "code for complex numbers",
                   [](Op& record) { Registry::instance().tables().set_same_as_dense(record); });
  });
}

void ImplBuilder::set_rule(ComplexGradient rule, GradientFn gradient) {
  for_each_name(names_, [&](const std::string& name) {
    join_to_record(name, "a gradient for complex numbers", [rule, gradient](Op& record) {
      record.complex_rule = rule;
      record.complex_gradient = gradient;
    });
  });
}
ImplBuilder& ImplBuilder::linear() {
  set_rule(ComplexGradient::kLinear, nullptr);
  return *this;
}
ImplBuilder& ImplBuilder::holomorphic() {
  set_rule(ComplexGradient::kHolomorphic, nullptr);
  return *this;
}

}  // namespace tensord::ops
