#include "core/autograd/op_info.h"

#include <bit>
#include <cctype>

#include "core/base/error.h"
#include "core/ops/registry.h"

namespace tensord::autograd {
namespace {

using ops::Op;
using ops::Type;
using ops::TypeKind;
using Role = OpInfo::Role;

bool is_tensor_type(const Type& type) {
  if (type.kind() == TypeKind::kTensor) return true;
  if (type.kind() == TypeKind::kOptional) return is_tensor_type(*type.element());
  return type.kind() == TypeKind::kList && is_tensor_type(*type.element());
}

bool is_list_type(const Type& type) {
  if (type.kind() == TypeKind::kOptional) return is_list_type(*type.element());
  return type.kind() == TypeKind::kList;
}

// "aten::_log_softmax" → "LogSoftmaxBackward", as PyTorch names nodes: a capital letter after each character that is
// not a letter.
std::string node_stem(const std::string& op_name) {
  std::string out;
  bool starts = true;
  for (const char c : op_name.substr(op_name.rfind(':') + 1)) {  // npos + 1 is 0
    const bool is_letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (c != '_') out += starts && is_letter ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    starts = !is_letter;
  }
  if (out.ends_with("Forward")) out.erase(out.size() - 7);
  return out + "Backward";
}

// Overloads with a gradient of their own are numbered from 0.
std::string node_name(const Op& op) {
  size_t number = 0;
  for (const Op* other : ops::find_overloads(op.schema.name)) {
    if (other == &op) break;
    number += other->gradient ? 1 : 0;
  }
  return node_stem(op.schema.name) + std::to_string(number);
}

// A composite on complex numbers whose gradient is that of the operators that it calls.
Role complex_role_of(const Op& op, Role role) {
  const Op& functional = op.base ? *op.base : op;
  if (functional.complex_rule != ops::ComplexGradient::kOfCalls || role == Role::kPassthrough) return role;
  if (!op.base) return Role::kPassthrough;
  return role == Role::kWrite ? Role::kWriteComposite : role;
}

OpInfo make_info(const Op& op) {
  OpInfo info;
  info.op = &op;
  info.gradient_op = op.base ? op.base : &op;
  const auto& arguments = op.schema.arguments;
  check_internal(arguments.size() / 64 == 0, op.name(), " has more arguments than a mask has bits");
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!is_tensor_type(*arguments[i].type)) continue;
    info.tensors.push_back(static_cast<uint8_t>(i));
    if (arguments[i].alias.is_write) info.written.push_back(static_cast<uint8_t>(i));
  }
  info.role = OpInfo::role_of(op);
  info.complex_role = complex_role_of(op, info.role);
  info.is_view = op.is_view && info.role == Role::kRecord;
  info.gives_many =
      op.schema.returns.size() > 1 || (!op.schema.returns.empty() && is_list_type(*op.schema.returns.front().type));
  for (const uint8_t i : info.tensors) {
    if (arguments[i].alias.set == 0) continue;
    info.target = i;
    break;
  }
  const auto saved_for = ops::saved_for(*info.gradient_op);
  info.saved_for.assign(saved_for.begin(), saved_for.end());
  info.node_name = node_name(*info.gradient_op);
  return info;
}

// Operators by address; read without a lock. Filled once: the registry is frozen by then.
class Table {
 public:
  Table() {
    const std::vector<const Op*> ops = ops::all_ops();
    infos_.reserve(ops.size());
    slots_.resize(std::bit_ceil(ops.size() * 4));
    for (const Op* op : ops) {
      infos_.push_back(make_info(*op));
      size_t at = slot_of(op);
      while (slots_[at]) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = &infos_.back();
    }
  }
  const OpInfo* find(const Op* op) const {
    for (size_t at = slot_of(op); slots_[at]; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at]->op == op) return slots_[at];
    }
    return nullptr;
  }

 private:
  size_t slot_of(const Op* op) const {
    return (reinterpret_cast<uintptr_t>(op) * 0x9E3779B97F4A7C15u >> 32) & (slots_.size() - 1);
  }
  std::vector<OpInfo> infos_;
  std::vector<const OpInfo*> slots_;
};

}  // namespace

Role OpInfo::role_of(const Op& op) {
  const auto& arguments = op.schema.arguments;
  if (op.tensor_arguments == 0) return Role::kPassthrough;
  bool gives_tensor = false;
  for (const auto& item : op.schema.returns) gives_tensor |= is_tensor_type(*item.type);
  bool writes_list = false, writes_keyword = false, writes_any = false, writes_first = false, is_first = true;
  for (const auto& argument : arguments) {
    if (!is_tensor_type(*argument.type)) continue;
    const bool is_written = argument.alias.is_write;
    writes_any |= is_written;
    writes_first |= is_written && is_first;
    writes_list |= is_written && is_list_type(*argument.type);
    writes_keyword |= is_written && argument.is_keyword_only;
    is_first = false;
  }
  if (writes_list || (!gives_tensor && !writes_any)) return Role::kPassthrough;
  if (writes_keyword) return Role::kOut;
  if (op.is_composite) return Role::kPassthrough;
  if (op.base && op.base->is_composite) return Role::kWriteComposite;
  if (writes_first) return Role::kWrite;
  return op.is_constant_result ? Role::kConstant : Role::kRecord;
}

const OpInfo& info_of(const Op& op) {
  static const Table table;
  const OpInfo* info = table.find(&op);
  // An operator that replaces another in a module's code calls operators of the registry.
  static const OpInfo stand_in;
  if (info == nullptr && op.is_composite) return stand_in;
  check_internal(info != nullptr, op.name(), " is not in the registry");
  return *info;
}

}  // namespace tensord::autograd
