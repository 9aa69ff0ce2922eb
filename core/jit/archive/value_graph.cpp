#include "core/jit/archive/value_graph.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/error.h"

namespace tensord::jit {
namespace {

using ops::Value;

constexpr uint32_t kMaxValueDepth = 1000;   // modules of real models reach about 60
constexpr uint64_t kMaxWalked = 100000000;  // limit on the values of a walk that visits shared values repeatedly

const void* identity(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::kList: return value.to_list().get();
    case Value::Tag::kDict: return value.to_dict().get();
    case Value::Tag::kTuple: return value.to_tuple().get();
    case Value::Tag::kObject: return value.to_object().get();
    default: return nullptr;
  }
}

void clear(const Value& value, std::vector<Value>* moved) {
  const auto take = [&](std::vector<Value>& items) {
    std::move(items.begin(), items.end(), std::back_inserter(*moved));
    items.clear();
  };
  switch (value.tag()) {
    case Value::Tag::kList: take(value.to_list()->items); break;
    case Value::Tag::kTuple: take(value.to_tuple()->items); break;
    case Value::Tag::kObject: take(value.to_object()->slots); break;
    case Value::Tag::kDict:
      for (auto& [key, item] : value.to_dict()->mutable_items()) moved->push_back(std::move(item));
      break;
    default: break;
  }
}

bool is_untyped(const ops::TypePtr& type) { return !type || type->kind() == ops::TypeKind::kAny; }

template <class Range, class Get>
ops::TypePtr common_type(const Range& items, Get get) {
  ops::TypePtr common;
  const Value* last = nullptr;
  for (const auto& item : items) {
    const Value& value = get(item);
    // All items of a long list of numbers have the same type, so only the first is looked up.
    if (last && last->tag() == value.tag() && !identity(value)) continue;
    const ops::TypePtr type = ops::type_of(value);
    common = common ? ops::unify(common, type) : type;
    if (!common) return ops::any_type();
    last = &value;
  }
  return common ? common : ops::any_type();
}

void infer(const Value& value) {
  const auto itself = [](const Value& item) -> const Value& { return item; };
  if (value.is_list()) {
    ops::ListObject& list = *value.to_list();
    if (is_untyped(list.element)) list.element = common_type(list.items, itself);
  } else if (value.is_dict()) {
    ops::DictObject& dict = *value.to_dict();
    const auto key = [](const auto& item) -> const Value& { return item.first; };
    const auto content = [](const auto& item) -> const Value& { return item.second; };
    if (is_untyped(dict.key)) dict.key = common_type(dict.items(), key);
    if (is_untyped(dict.value)) dict.value = common_type(dict.items(), content);
  }
}

// A depth-first walk over the containers with an explicit stack.
class Walk {
 public:
  Walk(const std::string& source, const ValueGraph::States& states, bool infer_types)
      : source_(source), infer_types_(infer_types) {
    for (const auto& [object, state] : states) states_[object.get()].push_back(state);
  }

  void run(const Value& root) {
    if (!enter(root)) return;
    while (!stack_.empty()) {
      if (stack_.back().next < stack_.back().children.size()) {
        const Value child = stack_.back().children[stack_.back().next++];
        if (!enter(child)) absorb(child);
      } else {
        leave();
      }
    }
  }

 private:
  struct Seen {
    bool is_open = true;
    uint32_t height = 1;
    uint64_t walked = 1;
  };
  struct Open {
    Value value;
    std::vector<Value> children;
    size_t next = 0;
  };

  bool enter(const Value& value) {
    if (!identity(value) || !seen_.emplace(identity(value), Seen{}).second) return false;
    if (stack_.size() >= kMaxValueDepth) fail_depth();
    Open open{value, {}, 0};
    seen_[identity(value)].walked += collect_children(value, &open.children);
    stack_.push_back(std::move(open));
    return true;
  }

  // Adds the result of a child that was visited before.
  void absorb(const Value& child) {
    Seen& parent = seen_.at(identity(stack_.back().value));
    const Seen& seen = seen_.at(identity(child));
    if (seen.is_open) {
      fail(ErrorCode::kUnimplemented, source_, ": a ", child.tag_name(), " that contains itself is not supported");
    }
    parent.height = std::max(parent.height, seen.height + 1);
    parent.walked += seen.walked;
    if (parent.height > kMaxValueDepth) fail_depth();
    if (parent.walked > kMaxWalked) {
      fail(ErrorCode::kResourceExhausted, source_, ": values are shared so often that walking them takes more than ",
           kMaxWalked, " steps");
    }
  }

  void leave() {
    const Value value = stack_.back().value;
    stack_.pop_back();
    if (infer_types_) infer(value);
    seen_[identity(value)].is_open = false;
    if (!stack_.empty()) absorb(value);
  }

  // Returns the number of values that are not containers.
  uint64_t collect_children(const Value& value, std::vector<Value>* children) const {
    uint64_t others = 0;
    const auto collect = [&](const Value& item) {
      if (identity(item))
        children->push_back(item);
      else
        ++others;
    };
    switch (value.tag()) {
      case Value::Tag::kList:
        std::for_each(value.to_list()->items.begin(), value.to_list()->items.end(), collect);
        break;
      case Value::Tag::kTuple:
        std::for_each(value.to_tuple()->items.begin(), value.to_tuple()->items.end(), collect);
        break;
      case Value::Tag::kDict:
        for (const auto& [key, item] : value.to_dict()->items()) collect(item);
        break;
      default:
        if (const auto it = states_.find(value.to_object().get()); it != states_.end()) {
          std::for_each(it->second.begin(), it->second.end(), collect);
        }
    }
    return others;
  }

  [[noreturn]] void fail_depth() const {
    fail(ErrorCode::kResourceExhausted, source_, ": values are nested more than ", kMaxValueDepth, " deep");
  }

  const std::string& source_;
  const bool infer_types_;
  std::unordered_map<const void*, std::vector<Value>> states_;
  std::unordered_map<const void*, Seen> seen_;
  std::vector<Open> stack_;
};

}  // namespace

ValueGraph::~ValueGraph() {
  if (is_verified_) return;
  // Collects the contents first, while every container is still owned here, so that none is destroyed inside another
  // one.
  std::vector<Value> contents;
  for (const Value& container : containers_) clear(container, &contents);
}

void ValueGraph::verify(const std::string& source, const States& states, bool infer_types) {
  Walk walk(source, states, infer_types);
  for (const Value& container : containers_) walk.run(container);
  is_verified_ = true;
}

}  // namespace tensord::jit
