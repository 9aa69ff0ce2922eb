#include "core/jit/archive/unpickler.h"

#include <bit>
#include <cstring>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/jit/archive/storage_types.h"

namespace tensord::jit {
namespace {

using ops::Value;

constexpr size_t kMaxCells = 32 << 20;  // of about 16 bytes each
constexpr size_t kMaxLine = 1024;
constexpr size_t kMaxMemoGap = 1024;
constexpr int kMaxRawDepth = 8;

}  // namespace

Unpickler::Unpickler(std::string_view text, const UnpickleContext& context)
    : text_(text), context_(context), conformer_(context.source) {
  if (text.size() > context.max_bytes) {
    fail(ErrorCode::kResourceExhausted, context.source, ": a pickle of ", text.size(), " bytes is larger than ",
         context.max_bytes);
  }
}

Unpickled unpickle(std::string_view text, const UnpickleContext& context) {
  Unpickler unpickler(text, context);
  return unpickler.run();
}

Unpickled Unpickler::run() {
  while (step()) {
  }
  Unpickled out;
  out.value = pop_plain();
  if (!stack_.empty() || !marks_.empty()) malformed("values are left at the end");
  graph_.verify(context_.source, states_, context_.infer_container_types);
  out.states = std::move(states_);
  return out;
}

void Unpickler::malformed(std::string_view what) const {
  fail(ErrorCode::kDataLoss, context_.source, ": damaged pickle: ", what, " at byte ", position_);
}

std::string_view Unpickler::take(size_t count) {
  if (count > text_.size() - position_) malformed("it is truncated");
  const std::string_view out = text_.substr(position_, count);
  position_ += count;
  return out;
}

uint64_t Unpickler::take_number(size_t bytes) {
  const std::string_view raw = take(bytes);
  uint64_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number |= static_cast<uint64_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
  return number;
}

std::string_view Unpickler::take_line() {
  const size_t end = text_.substr(position_, kMaxLine).find('\n');
  if (end == std::string_view::npos) malformed("a name does not end");
  const std::string_view line = take(end);
  take(1);
  return line;
}

// Reads a little-endian two's complement integer of any length.
int64_t Unpickler::take_long() {
  const size_t size = take_number(1);
  const std::string_view raw = take(size);
  if (size == 0) return 0;
  const char fill = static_cast<signed char>(raw.back()) < 0 ? '\xff' : '\0';
  char bytes[8];
  std::memset(bytes, fill, sizeof bytes);
  for (size_t i = 0; i < size; ++i) {
    if (i < 8)
      bytes[i] = raw[i];
    else if (raw[i] != fill)
      fail(ErrorCode::kUnimplemented, context_.source, ": an int of more than 64 bits is not supported");
  }
  if (size > 8 && ((bytes[7] ^ fill) & 0x80)) {
    fail(ErrorCode::kUnimplemented, context_.source, ": an int of more than 64 bits is not supported");
  }
  int64_t number = 0;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

double Unpickler::take_double() {
  const std::string_view raw = take(8);
  uint64_t bits = 0;
  for (const char c : raw) bits = bits << 8 | static_cast<unsigned char>(c);
  return std::bit_cast<double>(bits);
}

bool Unpickler::step() {
  const char opcode = take(1)[0];
  if (position_ == 1 && opcode != '\x80') malformed("it does not start with a protocol number");
  if (opcode == '.') return false;
  if (!step_simple(opcode) && !step_container(opcode)) {
    fail(ErrorCode::kDataLoss, context_.source, ": damaged pickle: opcode ",
         static_cast<int>(static_cast<unsigned char>(opcode)), " at byte ", position_ - 1, " is not allowed");
  }
  return true;
}

bool Unpickler::step_simple(char opcode) {
  switch (opcode) {
    case '\x80':
      if (const uint64_t protocol = take_number(1); protocol != 2) {
        fail(ErrorCode::kUnimplemented, context_.source, ": pickle protocol ", protocol, " is not supported, only 2");
      }
      return true;
    case 'N': push(Value()); return true;
    case '\x88': push(Value(true)); return true;
    case '\x89': push(Value(false)); return true;
    case 'K': push(Value(static_cast<int64_t>(take_number(1)))); return true;
    case 'M': push(Value(static_cast<int64_t>(take_number(2)))); return true;
    case 'J': push(Value(static_cast<int64_t>(static_cast<int32_t>(take_number(4))))); return true;
    case '\x8a': push(Value(take_long())); return true;
    case 'G': push(Value(take_double())); return true;
    case 'X': push(Value(std::string(take(take_number(4))))); return true;
    case '(':
      spend(1);
      marks_.push_back(stack_.size());
      return true;
    case 'q': put(take_number(1)); return true;
    case 'r': put(take_number(4)); return true;
    case 'h': push(get(take_number(1))); return true;
    case 'j': push(get(take_number(4))); return true;
    case 'c': {
      const std::string module(take_line());
      push(global(module + "." + std::string(take_line())));
      return true;
    }
    default: return step_bytes(opcode);
  }
}

bool Unpickler::step_container(char opcode) {
  const auto take_top = [&](size_t count) {
    std::vector<Value> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  };
  switch (opcode) {
    case ']': push(new_list({})); return true;
    case '}': push(new_dict()); return true;
    case ')': push(new_tuple({})); return true;
    case 't': push(new_tuple(pop_mark(false))); return true;
    case '\x85': push(new_tuple(take_top(1))); return true;
    case '\x86': push(new_tuple(take_top(2))); return true;
    case '\x87': push(new_tuple(take_top(3))); return true;
    case 'l': push(new_list(pop_mark(true))); return true;
    case 'a': append({pop_plain()}); return true;
    case 'e': append(pop_mark(true)); return true;
    case 's': set_items(take_top(2)); return true;
    case 'u': set_items(pop_mark(true)); return true;
    case 'd': {
      std::vector<Value> items = pop_mark(true);
      push(new_dict());
      set_items(std::move(items));
      return true;
    }
    case 'Q': persistent_id(); return true;
    case '\x81': new_object(); return true;
    case 'R': reduce(); return true;
    case 'b': build(); return true;
    default: return false;
  }
}

void Unpickler::spend(size_t cells) {
  check_work_cancelled();
  cells_ += cells;
  if (cells_ > kMaxCells) {
    fail(ErrorCode::kResourceExhausted, context_.source, ": the pickle creates more than ", kMaxCells, " values");
  }
}

void Unpickler::push(Value value) {
  spend(1);
  stack_.push_back(std::move(value));
}

Value& Unpickler::top() {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) malformed("the stack is empty");
  return stack_.back();
}

Value Unpickler::pop() {
  Value value = std::move(top());
  stack_.pop_back();
  return value;
}

const Value& Unpickler::require_plain(const Value& value) const {
  if (as<Machinery>(value)) {
    fail(ErrorCode::kUnimplemented, context_.source, ": '", value.to_opaque()->class_name(),
         "' as a value is not supported");
  }
  return value;
}

Value Unpickler::pop_plain() {
  Value value = pop();
  require_plain(value);
  return value;
}

std::vector<Value> Unpickler::pop_mark(bool plain) {
  if (marks_.empty()) malformed("there is no mark");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<Value> items(std::make_move_iterator(begin), std::make_move_iterator(stack_.end()));
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  if (plain) {
    for (const Value& item : items) require_plain(item);
  }
  return items;
}

// Writers number memo entries in ascending order, so an index far ahead means corrupt data, and the memo must not grow
// to it.
void Unpickler::put(uint64_t index) {
  if (index > memo_.size() + kMaxMemoGap) malformed("a memo index is out of order");
  if (index >= memo_.size()) {
    spend(index + 1 - memo_.size());
    memo_.resize(index + 1);
    memo_used_.resize(index + 1);
  }
  memo_[index] = top();
  memo_used_[index] = true;
}

Value Unpickler::get(uint64_t index) {
  if (index >= memo_.size() || !memo_used_[index]) malformed("a memo entry does not exist");
  return memo_[index];
}

Value Unpickler::new_container(Value value, size_t cells) {
  spend(cells);
  graph_.add(value);
  return value;
}

Value Unpickler::new_list(std::vector<Value> items) {
  const size_t cells = 4 + items.size();
  return new_container(Value(ops::make_list(ops::any_type(), std::move(items))), cells);
}

Value Unpickler::new_dict() {
  return new_container(Value(make_intrusive<ops::DictObject>(ops::any_type(), ops::any_type())), 8);
}

Value Unpickler::new_tuple(std::vector<Value> items) {
  int raw_depth = 0;
  for (const Value& item : items) {
    if (!as<Machinery>(item)) continue;
    const auto* raw = as<RawTuple>(item);
    raw_depth = std::max(raw_depth, raw ? raw->depth + 1 : 1);
  }
  const size_t cells = 4 + items.size();
  if (raw_depth == 0) return new_container(ops::make_tuple(std::move(items)), cells);
  if (raw_depth > kMaxRawDepth) malformed("classes are nested too deep");
  spend(cells);
  return Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<RawTuple>(std::move(items), raw_depth)));
}

void Unpickler::append(std::vector<Value> items) {
  Value& target = top();
  if (!target.is_list()) malformed("append to something that is not a list");
  std::vector<Value>& list = target.to_list()->items;
  spend(items.size());
  list.insert(list.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
}

void Unpickler::set_items(std::vector<Value> items) {
  Value& target = top();
  if (!target.is_dict()) malformed("items for something that is not a dict");
  if (items.size() % 2) malformed("a key has no value");
  spend(items.size());
  for (size_t i = 0; i < items.size(); i += 2)
    set_item(*target.to_dict(), require_plain(items[i]), require_plain(items[i + 1]));
}

void Unpickler::set_item(ops::DictObject& dict, const Value& key, const Value& value) {
  if (!key.is_string() && !key.is_number() && !key.is_complex() && !key.is_strided() && !key.is_enum()) {
    fail(ErrorCode::kUnimplemented, context_.source, ": a dict key of type ", key.tag_name(), " is not supported");
  }
  dict.set(key, value);
}

void Unpickler::build() {
  const Value state = pop();
  if (build_numpy(state)) return;
  require_plain(state);
  const Value& target = top();
  if (as<NewCustom>(target)) {
    build_custom(state);
  } else if (target.is_object()) {
    spend(2);
    states_.emplace_back(target.to_object(), state);
  } else if (!target.is_dict()) {  // attributes of an OrderedDict ("_metadata" of a state dict) carry no data
    malformed("a state for something that is not an object");
  }
}

void Unpickler::new_object() {
  const Value arguments = pop();
  const Value callee = pop();
  const auto* global = as<Global>(callee);
  if (global && global->call == &Unpickler::call_nothing) return push(new_dict());
  const bool is_custom = global && global->type && global->type->kind() == ops::TypeKind::kOpaque;
  if (!global || !global->type || (!is_custom && global->type->kind() != ops::TypeKind::kClass))
    malformed("a new object of something that is not a class");
  if (!arguments.is_tuple() || !arguments.to_tuple()->items.empty()) malformed("arguments for a new object");
  if (is_custom) return push(Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<NewCustom>(global->name))));
  auto type = std::static_pointer_cast<const ops::ClassType>(global->type);
  const size_t cells = 4 + type->attributes().size();
  spend(cells);
  push(new_container(Value(make_intrusive<ops::Object>(std::move(type))), 0));
}

// ('storage', torch.FloatStorage, key, location, element count). The location is the device that the tensor was saved
// from; everything is loaded to the CPU.
void Unpickler::persistent_id() {
  const Value id = pop();
  const auto* tuple = as<RawTuple>(id);
  if (!tuple || tuple->items.size() < 5) malformed("a storage reference has the wrong form");
  const std::vector<Value>& items = tuple->items;
  const auto* type = as<Global>(items[1]);
  if (!items[0].is_string() || items[0].to_string() != "storage" || !type || type->storage_dtype < 0 ||
      !items[2].is_string() || !items[3].is_string() || !items[4].is_int()) {
    malformed("a storage reference has the wrong form");
  }
  const auto dtype = static_cast<DType>(type->storage_dtype);
  const int64_t count = items[4].to_int();
  Storage storage = context_.storage(items[2].to_string());
  const size_t capacity = storage->size_bytes() / size_of(dtype);
  if (count < 0 || static_cast<uint64_t>(count) > capacity) {
    fail(ErrorCode::kDataLoss, context_.source, ": storage ", items[2].to_string(), " should hold ", count,
         " elements of ", name_of(dtype), " but its entry has ", storage->size_bytes(), " bytes");
  }
  push(Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<StorageRef>(std::move(storage), dtype, type->quantized))));
}

void Unpickler::reduce() {
  const Value arguments = pop();
  const Value callee = pop();
  if (!as<Global>(callee) || !as<Global>(callee)->call) malformed("a call of something that is not a function");
  push(call(static_cast<const Global&>(*callee.to_opaque()), arguments));
}

Value Unpickler::call(const Global& callee, const Value& arguments) {
  if (arguments.is_tuple()) return (this->*callee.call)(callee, arguments.to_tuple()->items);
  if (const auto* raw = as<RawTuple>(arguments)) return (this->*callee.call)(callee, raw->items);
  // libtorch writes an enum's value without a tuple.
  if (callee.type && callee.type->kind() == ops::TypeKind::kEnum) return (this->*callee.call)(callee, {&arguments, 1});
  malformed("the arguments of a call are not a tuple");
}

}  // namespace tensord::jit
