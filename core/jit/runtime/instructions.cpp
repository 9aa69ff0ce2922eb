#include "core/jit/runtime/instructions.h"

#include <algorithm>

#include "core/base/error.h"

namespace tensord::jit {

using ops::Value;

namespace {

// The slot is known if the object has the class for which the script was compiled.
Value& attribute_of(const Instruction& instruction, const InstructionDetail& detail, const Value& value) {
  ops::Object& object = *value.to_object();
  const size_t index = static_cast<size_t>(instruction.index);
  if (object.type.get() == detail.type.get() && index < object.slots.size()) return object.slots[index];
  return object.attribute(detail.name);
}

Value make_object(const InstructionDetail& detail) {
  auto type = std::dynamic_pointer_cast<const ops::ClassType>(detail.type);
  check_internal(type != nullptr, "object of a type that is not a class");
  return Value(make_intrusive<ops::Object>(std::move(type)));
}

Value make_dict(const InstructionDetail& detail, std::span<const Value> arguments) {
  const bool is_typed = detail.type->kind() == ops::TypeKind::kDict;
  auto dict = make_intrusive<ops::DictObject>(is_typed ? detail.type->contained()[0] : ops::any_type(),
                                              is_typed ? detail.type->contained()[1] : ops::any_type());
  for (size_t i = 0; i < arguments.size(); i += 2) dict->set(arguments[i], arguments[i + 1]);
  return Value(std::move(dict));
}

void unpack(const std::vector<Value>& items, const Instruction& instruction, const char* what,
            std::vector<Value>& returns) {
  check(items.size() == instruction.output_count, "Expected ", instruction.output_count, " elements in a ", what,
        " but found ", items.size());
  returns.insert(returns.end(), items.begin(), items.end());
}

}  // namespace

void execute_data(const Instruction& instruction, const InstructionDetail& detail, std::span<const Value> arguments,
                  std::vector<Value>& returns) {
  switch (instruction.code) {
    case OpCode::kGetAttr: returns.push_back(attribute_of(instruction, detail, arguments[0])); return;
    case OpCode::kSetAttr: attribute_of(instruction, detail, arguments[0]) = arguments[1]; return;
    case OpCode::kCreateObject: returns.push_back(make_object(detail)); return;
    case OpCode::kListConstruct:
      returns.emplace_back(ops::make_list(detail.type, {arguments.begin(), arguments.end()}));
      return;
    case OpCode::kDictConstruct: returns.push_back(make_dict(detail, arguments)); return;
    case OpCode::kListUnpack: return unpack(arguments[0].to_list()->items, instruction, "list", returns);
    case OpCode::kTupleUnpack: return unpack(arguments[0].to_tuple()->items, instruction, "tuple", returns);
    case OpCode::kTupleIndex: {
      const auto& items = arguments[0].to_tuple()->items;
      const int64_t size = static_cast<int64_t>(items.size());
      const int64_t index = instruction.index < 0 ? instruction.index + size : instruction.index;
      if (index < 0 || index >= size) fail(ErrorCode::kOutOfRange, "tuple index ", index, " out of range ", size);
      returns.push_back(items[static_cast<size_t>(index)]);
      return;
    }
    case OpCode::kIsInstance:
      returns.emplace_back(std::any_of(detail.types.begin(), detail.types.end(), [&](const ops::TypePtr& type) {
        return ops::is_instance(arguments[0], *type);
      }));
      return;
    case OpCode::kMakeFuture: returns.emplace_back(make_intrusive<ops::FutureObject>(arguments[0])); return;
    case OpCode::kWait:
      returns.push_back(arguments[0].is_future() ? arguments[0].to_future()->value() : arguments[0]);
      return;
    default: fail(ErrorCode::kInternal, "unknown instruction");
  }
}

}  // namespace tensord::jit
