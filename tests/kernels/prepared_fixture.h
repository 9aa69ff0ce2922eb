#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/prepared.h"
#include "core/ops/run.h"

// Runs prepared calls as a plan would: the memory of inputs, outputs and scratch is supplied.
namespace tensord::fixtures {

inline Tensor meta_of(const Tensor& t) { return Tensor::meta_strided(t.sizes(), t.strides(), t.dtype()); }

// Bitwise equal in every element, whatever the layout. NaNs are equal.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (!(a.sizes() == b.sizes()) || a.dtype() != b.dtype()) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  if (is_floating(a.dtype())) {
    const Tensor u = x.to(DType::kFloat64), v = y.to(DType::kFloat64);
    for (int64_t i = 0; i < u.numel(); ++i) {
      const double p = u.data<double>()[i], q = v.data<double>()[i];
      if (std::memcmp(&p, &q, sizeof(p)) != 0 && !(p != p && q != q)) return false;
    }
    return true;
  }
  return std::memcmp(x.raw_data(), y.raw_data(), x.size_bytes()) == 0;
}

// An output of a call, with guard bytes around it.
class Guarded {
 public:
  explicit Guarded(const Tensor& meta) {
    int64_t last = 0;
    for (size_t i = 0; i < meta.sizes().size(); ++i) last += (meta.sizes()[i] - 1) * meta.strides()[i];
    const auto item = static_cast<int64_t>(size_of(meta.dtype()));
    bytes_ = meta.numel() == 0 ? 0 : (last + 1) * item;
    room_ = Tensor::empty(Dims{bytes_ + 2 * kMargin}, DType::kUInt8);
    std::memset(room_.raw_data(), kUntouched, static_cast<size_t>(room_.numel()));
    std::memset(static_cast<char*>(room_.raw_data()) + kMargin, 0xff, static_cast<size_t>(bytes_));
    tensor_ = Tensor::from_storage(room_.storage(), meta.sizes(), meta.strides(), kMargin / item, meta.dtype());
  }
  const Tensor& tensor() const { return tensor_; }
  void expect_untouched() const {
    const auto* margin = static_cast<const unsigned char*>(room_.raw_data());
    EXPECT_EQ(std::count(margin, margin + kMargin, kUntouched), kMargin) << "in front of an output";
    margin += kMargin + bytes_;
    EXPECT_EQ(std::count(margin, margin + kMargin, kUntouched), kMargin) << "behind an output";
  }

 private:
  static constexpr int64_t kMargin = 4096;
  static constexpr unsigned char kUntouched = 0xa5;
  int64_t bytes_ = 0;
  Tensor room_, tensor_;
};

// The memory layout of a tensor: unchanged, reversed dimensions, every second element.
enum class Layout : uint8_t { kOwn, kReversed, kGapped };

inline Dims strides_of(Layout layout, const Tensor& t) {
  Dims strides = t.strides();
  if (layout == Layout::kOwn) return strides;
  int64_t next = layout == Layout::kGapped ? 2 : 1;
  for (size_t i = 0; i < strides.size(); ++i) {
    const size_t dim = layout == Layout::kReversed ? i : strides.size() - 1 - i;
    strides[dim] = next;
    next *= std::max<int64_t>(t.sizes()[dim], 1);
  }
  return strides;
}

class PreparedRunner {
 public:
  // Tensors of `arguments`, including those in lists, are inputs of each run unless they are in `constants`.
  PreparedRunner(const ops::Op& op, std::vector<ops::Value> arguments, const std::vector<Tensor>& constants,
                 int threads, Layout outputs = Layout::kOwn)
      : op_(op), threads_(threads) {
    for (ops::Value& argument : arguments) argument = hide(argument, constants);
    for (const ops::Value& result : ops::infer(op, arguments)) {
      if (result.is_tensor()) metas_.push_back(result.to_tensor());
      if (!result.is_list()) continue;
      for (const ops::Value& item : result.to_list()->items) metas_.push_back(item.to_tensor());
    }
    for (Tensor& meta : metas_) meta = Tensor::meta_strided(meta.sizes(), strides_of(outputs, meta), meta.dtype());
    const ops::PrepareFn& prepare = op.prepare[static_cast<size_t>(DeviceKind::kCPU)];
    if (!prepare) return;
    ops::PrepareArgs args{op, arguments, metas_, threads};
    args.packs = &packs_;
    prepared_ = prepare(args);
  }
  const ops::PreparedCall* prepared() const { return prepared_.get(); }

  // Output 0 is in the memory of input `overwritten`, unless that is negative.
  std::vector<Tensor> run(int overwritten = -1) {
    std::vector<const void*> inputs;
    std::vector<Tensor> outputs;
    std::vector<void*> output_data;
    std::vector<Guarded> guarded;
    Tensor target;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Tensor input = inputs_[i];
      if (static_cast<int>(i) == overwritten) input = target = input.clone(true);
      inputs.push_back(input.raw_data());
    }
    // Inputs beyond the last are NaN, so that a call that reads them gives NaN.
    static const std::vector<char> stray(1 << 20, static_cast<char>(0xff));
    inputs.insert(inputs.end(), 4, stray.data());
    for (const Tensor& meta : metas_) {
      Tensor out = target;
      if (!target || !outputs.empty()) {
        out = guarded.emplace_back(meta).tensor();
      }
      outputs.push_back(out);
      output_data.push_back(out.raw_data());
    }
    std::vector<char> scratch(prepared_->scratch_bytes + 64, static_cast<char>(0xff));
    const auto address = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
    set_thread_budget(threads_);
    prepared_->run(ops::KernelContext(), {inputs.data(), output_data.data(), reinterpret_cast<void*>(address)});
    for (const Guarded& one : guarded) one.expect_untouched();
    return outputs;
  }
  size_t input_count() const { return inputs_.size(); }

 private:
  ops::Value hide(const ops::Value& value, const std::vector<Tensor>& constants) {
    if (value.is_list()) {
      std::vector<Tensor> tensors;
      for (const ops::Value& item : value.to_list()->items) {
        if (!item.is_tensor()) return value;
        tensors.push_back(hide(item, constants).to_tensor());
      }
      return tensors.empty() ? value : ops::make_tensor_list(tensors);
    }
    if (!value.is_tensor()) return value;
    for (const Tensor& constant : constants) {
      if (constant.is_same(value.to_tensor())) return value;
    }
    inputs_.push_back(value.to_tensor());
    return meta_of(value.to_tensor());
  }

  const ops::Op& op_;
  int threads_;
  ops::PackStore packs_;
  std::vector<Tensor> inputs_, metas_;
  std::unique_ptr<ops::PreparedCall> prepared_;
};

inline std::mt19937& generator() {
  static std::mt19937 g(7);
  return g;
}
inline int64_t pick(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(generator());
}
// Values around zero; a few are special.
inline Tensor random_tensor(const Dims& sizes, DType dtype = DType::kFloat32) {
  const Tensor wide = Tensor::empty(sizes, DType::kFloat64);
  std::uniform_real_distribution<double> values(-4, 4);
  for (int64_t i = 0; i < wide.numel(); ++i) wide.data<double>()[i] = values(generator());
  return wide.to(dtype);
}

}  // namespace tensord::fixtures
