#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/archive/conform.h"
#include "core/jit/archive/pickle.h"
#include "core/jit/archive/value_graph.h"
#include "core/jit/archive/viewed_memory.h"
#include "core/ops/quantized.h"

namespace tensord::jit {

// The stack machine of unpickle(): a stack, marks and a memo. Functions, classes and storages are opaque values on the
// stack and are accepted only where the format expects them.
class Unpickler {
 public:
  Unpickler(std::string_view text, const UnpickleContext& context);
  Unpickled run();

 private:
  using Value = ops::Value;
  struct Machinery;  // base of the values that are accepted only where the format expects them
  struct Global;     // a supported function or class
  struct StorageRef;
  struct RawTuple;   // a tuple that contains such a value
  struct NewCustom;  // an object of a built-in class whose state follows
  using Call = Value (Unpickler::*)(const Global& callee, std::span<const Value> arguments);

  // Reading.
  std::string_view take(size_t count);
  uint64_t take_number(size_t bytes);
  std::string_view take_line();
  int64_t take_long();
  double take_double();

  // One opcode; false at STOP.
  bool step();
  bool step_simple(char opcode);
  bool step_container(char opcode);

  // Stack, marks, memo.
  void push(Value value);
  Value pop();
  Value pop_plain();  // rejects functions, classes and storages
  Value& top();
  std::vector<Value> pop_mark(bool plain);
  void put(uint64_t index);
  Value get(uint64_t index);
  const Value& require_plain(const Value& value) const;

  // Building.
  template <class T>
  static const T* as(const Value& value) {
    if (!value.is_opaque()) return nullptr;
    return dynamic_cast<const T*>(value.to_opaque().get());
  }
  Value new_container(Value value, size_t cells);
  Value new_list(std::vector<Value> items);
  Value new_dict();
  Value new_tuple(std::vector<Value> items);
  void append(std::vector<Value> items);
  void set_items(std::vector<Value> items);
  void set_item(ops::DictObject& dict, const Value& key, const Value& value);
  void build();
  void persistent_id();
  void new_object();
  void build_custom(const Value& state);
  void reduce();
  Value call(const Global& callee, const Value& arguments);
  void spend(size_t cells);

  // Globals (unpickler_calls.cpp).
  Value global(const std::string& name);
  Value make_global(const std::string& name);
  Value call_tensor(const Global&, std::span<const Value> arguments);
  Value call_parameter(const Global&, std::span<const Value> arguments);
  Value call_typed_tensor(const Global& callee, std::span<const Value> arguments);
  Value call_nothing(const Global&, std::span<const Value> arguments);
  Value call_set(const Global& callee, std::span<const Value> arguments);
  Value call_typed_list(const Global& callee, std::span<const Value> arguments);
  Value call_type_tag(const Global&, std::span<const Value> arguments);
  Value call_ordered_dict(const Global&, std::span<const Value> arguments);
  Value call_device(const Global&, std::span<const Value> arguments);
  Value call_size(const Global&, std::span<const Value> arguments);
  Value call_complex(const Global&, std::span<const Value> arguments);
  Value call_enum(const Global& callee, std::span<const Value> arguments);
  // unpickler_quantized.cpp
  Value call_quantized(const Global& callee, std::span<const Value> arguments);
  ops::Quantizer to_quantizer(const Value& value) const;
  std::optional<Value> quantized_global(const std::string& name);
  // unpickler_sparse.cpp
  Value call_layout(const Global& callee, std::span<const Value> arguments);
  Value call_sparse(const Global& callee, std::span<const Value> arguments);
  Value make_sparse(int64_t layout, const Value& sizes, std::span<const Value> parts, bool is_coalesced);
  Tensor sparse_part(const Value& value, bool is_copied) const;
  // unpickler_numpy.cpp
  struct NumpyDType;
  struct NumpyArray;
  std::optional<Value> numpy_global(const std::string& name);
  bool step_bytes(char opcode);
  bool build_numpy(const Value& state);
  Value call_numpy_array(const Global& callee, std::span<const Value> arguments);
  Value call_numpy_dtype(const Global& callee, std::span<const Value> arguments);
  Value call_encode(const Global& callee, std::span<const Value> arguments);
  Tensor numpy_tensor(const Dims& sizes, DType dtype, bool is_fortran, const std::string& bytes) const;
  Dims to_dims(const Value& value, const char* what) const;
  void record_requires_grad(const Tensor& tensor, std::span<const Value> arguments, size_t index) const;
  const Value& argument(const Global& callee, std::span<const Value> arguments, size_t index) const;

  [[noreturn]] void malformed(std::string_view what) const;

  const std::string_view text_;
  const UnpickleContext& context_;
  size_t position_ = 0;
  size_t cells_ = 0;
  ValueGraph graph_;  // declared before the members that hold values: it must outlive them to take containers apart
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::vector<Value> memo_;
  std::vector<bool> memo_used_;
  std::map<std::string, Value> globals_;
  ValueGraph::States states_;
  Conformer conformer_;
  ViewedMemory viewed_;

  friend Unpickled unpickle(std::string_view text, const UnpickleContext& context);
};

struct Unpickler::Machinery : ops::OpaqueObject {};

struct Unpickler::Global final : Machinery {
  Global(std::string name, Call call, ops::TypePtr type = nullptr)
      : name(std::move(name)), call(call), type(std::move(type)) {}
  std::string class_name() const override { return name; }
  std::string name;
  Call call;          // null: not callable
  ops::TypePtr type;  // the type of a class, enum or typed list; null for storage classes
  int storage_dtype = -1;
  std::optional<ops::QuantizedType> quantized = {};  // for storage classes
};

struct Unpickler::StorageRef final : Machinery {
  StorageRef(Storage storage, DType dtype, std::optional<ops::QuantizedType> quantized)
      : storage(std::move(storage)), dtype(dtype), quantized(quantized) {}
  std::string class_name() const override { return "storage"; }
  Storage storage;
  DType dtype;
  std::optional<ops::QuantizedType> quantized;
};

struct Unpickler::NewCustom final : Machinery {
  explicit NewCustom(std::string name) : name(std::move(name)) {}
  std::string class_name() const override { return name; }
  std::string name;
};

struct Unpickler::RawTuple final : Machinery {
  RawTuple(std::vector<Value> items, int depth) : items(std::move(items)), depth(depth) {}
  std::string class_name() const override { return "tuple"; }
  std::vector<Value> items;
  int depth;
};

}  // namespace tensord::jit
