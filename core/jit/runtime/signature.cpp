#include "core/jit/runtime/signature.h"

#include <cstring>

#include "core/base/error.h"

namespace tensord::jit {

using ops::Value;

namespace {

// A longer key costs more than the plan saves.
constexpr size_t kMaxWords = 4096;
constexpr int kMaxResultDepth = 8;

// Passes the words of a signature to `take`, which returns whether to continue.
template <class Take>
class Walker {
 public:
  explicit Walker(Take& take) : take_(take) {}

  bool value(const Value& value, int depth = 0) {
    if (!take_(static_cast<int64_t>(value.tag()))) return false;
    switch (value.tag()) {
      case Value::Tag::kBool: return take_(value.to_bool());
      case Value::Tag::kInt: return take_(value.to_int());
      case Value::Tag::kFloat: return take_(__builtin_bit_cast(int64_t, value.to_float()));
      case Value::Tag::kComplex:
        return take_(__builtin_bit_cast(int64_t, value.to_complex().real())) &&
               take_(__builtin_bit_cast(int64_t, value.to_complex().imag()));
      case Value::Tag::kDevice: return device(value.to_device());
      case Value::Tag::kString: return text(value.to_string());
      case Value::Tag::kTensor: return !value.is_strided() || tensor(value.to_tensor());
      case Value::Tag::kList: return items(value.to_list()->items, depth);
      case Value::Tag::kTuple: return items(value.to_tuple()->items, depth);
      default: return true;
    }
  }

 private:
  bool device(Device device) { return take_(static_cast<int64_t>(device.kind) << 8 | device.index); }

  bool text(const std::string& text) {
    if (!take_(static_cast<int64_t>(text.size()))) return false;
    for (size_t i = 0; i < text.size(); i += 8) {
      int64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min<size_t>(8, text.size() - i));
      if (!take_(word)) return false;
    }
    return true;
  }

  bool tensor(const Tensor& tensor) {
    const Dims &sizes = tensor.sizes(), &strides = tensor.strides();
    if (!take_(static_cast<int64_t>(tensor.dtype()) << 8 | tensor.ndim()) || !device(tensor.device())) return false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!take_(sizes[i]) || !take_(strides[i])) return false;
    }
    return true;
  }

  bool items(const std::vector<Value>& items, int depth) {
    if (!take_(static_cast<int64_t>(items.size()))) return false;
    if (depth >= kMaxResultDepth) return take_(reinterpret_cast<int64_t>(&items));
    for (const Value& item : items) {
      if (!value(item, depth + 1)) return false;
    }
    return true;
  }

  Take& take_;
};

template <class Take>
void walk(std::span<const Value> arguments, int threads, Take take) {
  Walker<Take> walker(take);
  if (!take(threads)) return;
  for (const Value& argument : arguments) {
    if (!walker.value(argument)) return;
  }
}

bool is_plain(const Value& value) {
  return value.is_number() || value.is_string() || value.is_none() || value.is_device();
}

Value abstract(const Value& argument, int depth) {
  if (is_plain(argument)) return argument;
  if (argument.is_strided()) {
    const Tensor& tensor = argument.to_tensor();
    return Tensor::meta_strided(tensor.sizes(), tensor.strides(), tensor.dtype(), tensor.device());
  }
  const bool is_sequence = argument.is_list() || argument.is_tuple();
  if (!is_sequence || depth >= kMaxResultDepth) return {};
  std::vector<Value> items;
  for (const Value& item : argument.is_list() ? argument.to_list()->items : argument.to_tuple()->items) {
    items.push_back(abstract(item, depth + 1));
    if (items.back().is_none() && !item.is_none()) return {};
  }
  if (argument.is_tuple()) return make_intrusive<ops::TupleObject>(std::move(items), argument.to_tuple()->type);
  return ops::make_list(argument.to_list()->element, std::move(items));
}

}  // namespace

Signature::Signature(std::span<const Value> arguments, int threads) {
  hash_ = 0x9e3779b97f4a7c15;
  walk(arguments, threads, [this](int64_t word) {
    is_usable_ = words_.size() < kMaxWords;
    if (!is_usable_) return false;
    words_.push_back(word);
    hash_ = (hash_ ^ static_cast<uint64_t>(word)) * 0xff51afd7ed558ccd;
    hash_ ^= hash_ >> 32;
    return true;
  });
}

bool Signature::matches(std::span<const Value> arguments, int threads) const {
  size_t at = 0;
  bool is_same = true;
  walk(arguments, threads, [&](int64_t word) {
    is_same = at < words_.size() && words_[at] == word;
    ++at;
    return is_same;
  });
  return is_same && at == words_.size();
}

Value abstract_value(const Value& argument) { return abstract(argument, 0); }

void specialize_inputs(Graph& graph, std::span<const Value> arguments) {
  const auto inputs = graph.inputs();
  check_internal(inputs.size() == arguments.size(), "a graph with ", inputs.size(), " inputs, ", arguments.size(),
                 " arguments");
  for (size_t i = 0; i < inputs.size(); ++i) {
    GraphValue* input = inputs[i];
    if (!is_plain(arguments[i])) {
      input->set_known(abstract_value(arguments[i]));
      // An Optional[Tensor] that has come is a Tensor.
      if (arguments[i].is_strided()) input->set_type(ops::tensor_type());
      continue;
    }
    if (!input->has_uses()) continue;
    Node* constant = graph.create_constant(arguments[i]);
    if (Node* first = graph.block()->first())
      constant->insert_before(first);
    else
      constant->append_to(graph.block());
    constant->output()->set_name(input->name());
    input->replace_all_uses_with(constant->output());
  }
}

std::string describe_arguments(std::span<const Value> arguments) {
  std::string out;
  for (const Value& argument : arguments) {
    if (argument.is_object()) continue;
    out += out.empty() ? "" : ", ";
    if (argument.is_strided())
      out += describe(argument.to_tensor());
    else if (argument.is_int())
      out += std::to_string(argument.to_int());
    else
      out += argument.tag_name();
  }
  return out;
}

}  // namespace tensord::jit
