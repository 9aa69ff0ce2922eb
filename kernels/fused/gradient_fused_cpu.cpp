// Gradient formulas in one pass over memory; see gradient_trace.h.
#include <bit>
#include <list>
#include <unordered_map>

#include "core/base/parallel.h"
#include "core/ops/call_observer.h"
#include "kernels/fused/gradient_trace.h"

namespace tensord::kernels::gradient {

using ops::Value;

namespace {

Tensor meta_like(const Tensor& x) { return Tensor::meta_strided(x.sizes(), x.strides(), x.dtype()); }

bool is_equal(const std::vector<Value>& a, const std::vector<Value>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same =
        a[i].is_tensor() || b[i].is_tensor() ? a[i].is_same(b[i]) : a[i].tag() == b[i].tag() && a[i].equals(b[i]);
    if (!same) return false;
  }
  return a.size() == b.size();
}

}  // namespace

Trace::Trace(std::span<const Expr> operands) {
  for (const Expr& operand : operands) {
    if (!operand.is_tensor()) {
      operands_.push_back(operand);
    } else if (operand.tensor().is_meta()) {
      operands_.emplace_back();
    } else {
      values_.push_back(meta_like(operand.tensor()));
      numbers_.push_back(builder_.add_input(values_.back()));
      operands_.emplace_back(values_.back());
    }
  }
  inputs_ = values_.size();
  set_recorder(this);
}
Trace::~Trace() { set_recorder(nullptr); }

std::ptrdiff_t Trace::find(const Tensor& value) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].is_same(value)) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

Value Trace::add(const ops::Op& op, std::vector<Value> arguments) {
  for (const Call& call : calls_) {
    if (call.op == &op && is_equal(call.arguments, arguments)) return call.result;
  }
  std::vector<std::pair<int, int>> operands;
  bool is_covered = true, is_constant = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::ptrdiff_t value = arguments[i].is_tensor() ? find(arguments[i].to_tensor()) : -1;
    if (value < 0) continue;
    is_constant = false;
    is_covered = is_covered && numbers_[static_cast<size_t>(value)] >= 0;
    operands.emplace_back(static_cast<int>(i), numbers_[static_cast<size_t>(value)]);
  }
  if (is_constant) return ops::run(op, arguments).front();
  Call call{&op, arguments, ops::infer(op, arguments).front().to_tensor()};
  numbers_.push_back(is_covered ? builder_.add_call(op, std::move(arguments), operands) : -1);
  values_.push_back(call.result);
  calls_.push_back(std::move(call));
  return values_.back();
}

std::optional<size_t> Trace::input_of(const Expr& result) const {
  const std::ptrdiff_t value = result.is_tensor() ? find(result.tensor()) : -1;
  if (value < 0 || value >= static_cast<std::ptrdiff_t>(inputs_)) return std::nullopt;
  return static_cast<size_t>(value);
}

std::unique_ptr<ops::PreparedCall> Trace::compile(const Expr& result, int threads) {
  const std::ptrdiff_t value = result.is_tensor() ? find(result.tensor()) : -1;
  if (value < 0 || numbers_[static_cast<size_t>(value)] < 0) return nullptr;
  return builder_.finish(std::span(&numbers_[static_cast<size_t>(value)], 1), std::span(&result.tensor(), 1), threads);
}

namespace {

// A formula compiled for operands of certain shapes.
struct Compiled {
  std::optional<size_t> input;  // passed on unchanged
  std::unique_ptr<ops::PreparedCall> call;
  Tensor result;  // meta; undefined if it is not covered
};

Compiled compile(GradientFormula formula, std::span<const Expr> operands) {
  Compiled compiled;
  Trace trace(operands);
  const Expr result = formula(trace.operands());
  compiled.input = trace.input_of(result);
  if (compiled.input) return compiled;
  compiled.call = trace.compile(result, thread_budget());
  if (compiled.call) compiled.result = result.tensor();
  return compiled;
}

// The formulas that this thread used last, by what they were compiled for.
class Cache {
 public:
  using Key = std::vector<int64_t>;
  static constexpr size_t kCapacity = 256;

  // The reference is invalid after the next call.
  const Compiled& get(const Key& key, GradientFormula formula, std::span<const Expr> operands) {
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->second;
    }
    entries_.emplace_front(key, compile(formula, operands));
    by_key_.emplace(key, entries_.begin());
    if (entries_.size() > kCapacity) {
      by_key_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return entries_.front().second;
  }

 private:
  struct Hash {
    size_t operator()(const Key& key) const {
      uint64_t hash = key.size();
      for (const int64_t word : key)
        hash = (hash ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
      return hash;
    }
  };
  std::list<std::pair<Key, Compiled>> entries_;  // the last used first
  std::unordered_map<Key, std::list<std::pair<Key, Compiled>>::iterator, Hash> by_key_;
};

// Everything a compiled formula depends on.
void make_key(GradientFormula formula, std::span<const Expr> operands, Cache::Key& key) {
  key.clear();
  key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(formula)));
  key.push_back(thread_budget());
  for (const Expr& operand : operands) {
    const Value& value = operand.value;
    if (value.is_tensor() && !value.to_tensor().is_meta()) {
      const Tensor& x = value.to_tensor();
      key.push_back(1000 + x.ndim() * 64 + static_cast<int64_t>(x.dtype()));
      key.insert(key.end(), x.sizes().begin(), x.sizes().end());
      key.insert(key.end(), x.strides().begin(), x.strides().end());
    } else {
      key.push_back(static_cast<int64_t>(value.tag()));
      if (value.is_float()) key.push_back(std::bit_cast<int64_t>(value.to_float()));
      if (value.is_int() || value.is_bool()) key.push_back(value.to_scalar().to_int());
    }
  }
}

bool can_fuse(std::span<const Expr> operands) {
  if (is_grad_enabled() || recorder() || ops::observer_at(Functionality::kStepRecorder)) return false;
  for (const Expr& operand : operands) {
    if (operand.value.is_complex()) return false;
    if (!operand.is_tensor()) continue;
    if (operand.tensor().device().kind != DeviceKind::kCPU || is_complex(operand.tensor().dtype())) return false;
  }
  return true;
}

Tensor run_compiled(const Compiled& compiled, std::span<const Expr> operands) {
  constexpr size_t kMax = 16;
  const void* inputs[kMax];
  size_t count = 0;
  for (const Expr& operand : operands) {
    if (operand.is_tensor() && !operand.tensor().is_meta()) inputs[count++] = operand.tensor().raw_data();
  }
  const Tensor& meta = compiled.result;
  const Tensor out = Tensor::empty_strided(meta.sizes(), meta.strides(), meta.dtype());
  Tensor scratch;
  if (compiled.call->scratch_bytes > 0)
    scratch = Tensor::empty(Dims{static_cast<int64_t>(compiled.call->scratch_bytes)}, DType::kUInt8);
  void* output = out.raw_data();
  compiled.call->run(ops::KernelContext(), {inputs, &output, scratch ? scratch.raw_data() : nullptr});
  return out;
}

const Tensor& input_number(std::span<const Expr> operands, size_t number) {
  for (const Expr& operand : operands) {
    if (operand.is_tensor() && !operand.tensor().is_meta() && number-- == 0) return operand.tensor();
  }
  fail(ErrorCode::kInternal, "a gradient formula has no input ", number);
}

Tensor evaluate_fused(GradientFormula formula, std::span<const Expr> operands) {
  if (!can_fuse(operands)) return {};
  thread_local Cache cache;
  thread_local Cache::Key key;
  make_key(formula, operands, key);
  const Compiled& compiled = cache.get(key, formula, operands);
  if (compiled.input) return input_number(operands, *compiled.input);
  if (!compiled.result) return {};
  return run_compiled(compiled, operands);
}
[[maybe_unused]] const bool is_set = [] {
  set_fused_evaluation(evaluate_fused);
  return true;
}();

}  // namespace

}  // namespace tensord::kernels::gradient
