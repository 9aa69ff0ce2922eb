// Optimizers with sparse gradients of tables compared with PyTorch's steps, and optimizers that refuse them.
#include <gmock/gmock.h>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/nn/optim/clip_grad.h"
#include "core/nn/optim/optimizer.h"
#include "core/ops/run.h"
#include "core/ops/sparse.h"
#include "tests/nn/nn_cases.h"

namespace tensord::nn::sparse_optimizers_test {
namespace {

using ops::call_by_name;
using ops::Value;

Tensor dense(const Tensor& gradient) { return call_by_name("aten::to_dense", gradient); }

void backward_of(const Tensor& table, const Tensor& indices, const Tensor& weights) {
  const Tensor rows = call_by_name("aten::embedding", table, indices, int64_t{-1}, false, true);
  autograd::backward(call_by_name("aten::sum", call_by_name("aten::mul.Tensor", rows, weights)));
}

// One case of run_sparse_optimizer.
class Replay {
 public:
  explicit Replay(const Value& saved) : saved_(saved) {
    for (const Tensor& tensor : tensors(item(saved, "start"))) {
      tables_.push_back(tensor.clone());
      autograd::set_requires_grad(tables_.back());
    }
    Options options;
    for (const auto& [name, value] : dict_of(item(saved, "options")).items()) options.set(name.to_string(), value);
    optimizer_ = make_optimizer(item(saved, "kind").to_string(), {{tables_, {}}}, options);
  }

  void step(size_t number) {
    const auto indices = tensors(items(saved_, "indices")[number]), weights = tensors(items(saved_, "weights")[number]);
    const auto grads = tensors(items(saved_, "grads")[number]);
    optimizer_->zero_grad();
    for (size_t i = 0; i < tables_.size(); ++i) {
      backward_of(tables_[i], indices[i], weights[i]);
      const Tensor gradient = autograd::grad(tables_[i]);
      ASSERT_TRUE(ops::as_sparse(gradient)) << name();
      EXPECT_LT(difference(dense(gradient), grads[i]), tolerance()) << name() << ", step " << number;
    }
    optimizer_->step();
  }
  void expect_at(size_t number) const {
    const auto expected = tensors(items(saved_, "at")[number]);
    for (size_t i = 0; i < tables_.size(); ++i)
      EXPECT_LT(difference(tables_[i], expected[i]), tolerance()) << name() << ", table " << i << ", step " << number;
  }
  void start_at(size_t number) {
    const NoGradGuard without_grad;
    const auto from = tensors(items(saved_, "at")[number]);
    for (size_t i = 0; i < tables_.size(); ++i) tables_[i].copy_from(from[i]);
  }
  Optimizer& optimizer() { return *optimizer_; }

 private:
  double tolerance() const { return tables_[0].dtype() == DType::kFloat64 ? 1e-12 : 2e-6; }
  std::string name() const { return item(saved_, "kind").to_string(); }

  const Value saved_;
  std::vector<Tensor> tables_;
  std::unique_ptr<Optimizer> optimizer_;
};

TEST(SparseOptimizers, TrajectoriesEqualPyTorch) {
  const Value cases = load_cases("sparse_optimizers");
  EXPECT_EQ(get_items(cases, "cases").size(), 18u);
  for (const Value& saved : get_items(cases, "cases")) {
    Replay run(saved);
    for (size_t step = 0; step < 20; ++step) {
      run.step(step);
      run.expect_at(step);
    }
  }
}

TEST(SparseOptimizers, GoOnFromAStateThatPyTorchSavedAndFromTheirOwn) {
  const Value cases = load_cases("sparse_optimizers");
  for (const Value& saved : get_items(cases, "cases")) {
    Replay first(saved), second(saved);
    first.start_at(9);
    first.optimizer().load_state_dict(item(saved, "state"));
    for (size_t step = 10; step < 15; ++step) first.step(step);
    second.start_at(14);
    second.optimizer().load_state_dict(first.optimizer().state_dict());
    for (size_t step = 15; step < 20; ++step) second.step(step);
    first.expect_at(14);
    second.expect_at(19);
  }
}

template <class Fn>
std::string error_of(const Fn& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Tensor table_with_gradient() {
  const Tensor table = call_by_name("aten::ones", Dims{4, 2}), index = Tensor::empty(Dims{3}, DType::kInt64);
  autograd::set_requires_grad(table);
  std::copy_n(std::array<int64_t, 3>{1, 3, 1}.data(), 3, index.data<int64_t>());
  backward_of(table, index, vector_of({1, 2, 3, 4, 5, 6}).to(DType::kFloat32).as_view({3, 2}, {2, 1}, 0));
  return table;
}

TEST(SparseOptimizers, WhatDoesNotTakeThemSaysSoAndChangesNothing) {
  const Tensor table = table_with_gradient(), other = call_by_name("aten::ones", Dims{2});
  autograd::set_requires_grad(other);
  autograd::set_grad(other, other.clone());
  const auto error_with = [&](const char* kind, const Options& options = {}) {
    return error_of([&] { make_optimizer(kind, {{{other, table}, {}}}, options)->step(); });
  };
  EXPECT_EQ(error_with("adam"), "Adam does not support sparse gradients, please consider SparseAdam instead");
  EXPECT_EQ(error_with("adamw"), "AdamW does not support sparse gradients");
  EXPECT_EQ(error_with("rmsprop"), "RMSprop does not support sparse gradients");
  EXPECT_EQ(error_with("sparseadam"), "SparseAdam does not support dense gradients, please consider Adam instead");
  EXPECT_EQ(error_of([&] {
              make_optimizer("adagrad", {{{table}, {}}}, {{"weight_decay", 0.1}})->step();
            }),
            "tensord::adagrad_step_: weight_decay option is not compatible with sparse gradients");
  EXPECT_EQ(error_of([&] {
              make_optimizer("sgd", {{{table}, {}}}, {{"weight_decay", 0.1}})->step();
            }),
            "tensord::sgd_step_: weight_decay option is not compatible with sparse gradients");
  EXPECT_EQ(error_of([&] {
              make_optimizer("sparseadam", {{{table}, {}}}, {{"lr", 0.0}});
            }),
            "Invalid learning rate: 0");
  for (const Tensor& tensor : {table, other}) EXPECT_EQ(difference(tensor, call_by_name("aten::ones_like", tensor)), 0);
}

TEST(SparseOptimizers, ClippingIsThatOfTheDenseGradient) {
  const Tensor table = table_with_gradient(), copy = table_with_gradient();
  autograd::set_grad(copy, dense(autograd::grad(copy)));
  EXPECT_NEAR(grad_norm(std::span(&table, 1)), grad_norm(std::span(&copy, 1)), 1e-6);
  EXPECT_NEAR(clip_grad_norm_(std::span(&table, 1), 2.0), clip_grad_norm_(std::span(&copy, 1), 2.0), 1e-6);
  EXPECT_LT(difference(dense(autograd::grad(table)), autograd::grad(copy)), 1e-6);
  clip_grad_value_(std::span(&table, 1), 0.7);
  clip_grad_value_(std::span(&copy, 1), 0.7);
  EXPECT_LT(difference(dense(autograd::grad(table)), autograd::grad(copy)), 1e-6);
  zero_grad(std::span(&table, 1), /*set_to_none=*/false);
  EXPECT_EQ(ops::as_sparse(autograd::grad(table))->nnz(), 0);
}

// In one group with a dense gradient; each takes its own kernel.
TEST(SparseOptimizers, ScaledGradientsAreDividedAgain) {
  for (const char* kind : {"sgd", "adagrad"}) {
    std::vector<Tensor> plain, scaled;
    for (std::vector<Tensor>* params : {&plain, &scaled}) {
      const double scale = params == &plain ? 1 : 1024;
      const Tensor table = table_with_gradient(), other = call_by_name("aten::ones", Dims{2});
      autograd::set_requires_grad(other);
      autograd::set_grad(other, call_by_name("aten::full_like", other, 0.5 * scale));
      autograd::set_grad(table, call_by_name("aten::mul.Scalar", autograd::grad(table), scale));
      *params = {table, other};
      const auto optimizer = make_optimizer(kind, {{*params, {}}}, {{"lr", 0.1}});
      optimizer->set_gradient_scale(scale);
      optimizer->step();
    }
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(difference(plain[i], scaled[i]), 0) << kind << i;
    EXPECT_GT(difference(plain[0], call_by_name("aten::ones_like", plain[0])), 0);
  }
}

TEST(SparseOptimizers, AStateOfAnotherDtypeIsConverted) {
  const Tensor table = table_with_gradient(), wide = call_by_name("aten::ones", Dims{4, 2}).to(DType::kFloat64);
  autograd::set_requires_grad(wide);
  autograd::set_grad(wide, call_by_name("aten::to.dtype", autograd::grad(table), static_cast<int64_t>(DType::kFloat64),
                                        false, false, Value()));
  const auto make = [](const Tensor& param) { return make_optimizer("sgd", {{{param}, {}}}, {{"momentum", 0.9}}); };
  const auto saved = make(wide), loaded = make(table);
  saved->step();
  loaded->load_state_dict(saved->state_dict());
  const Value state = loaded->state_dict();
  const Tensor buffer = item(dict_of(item(state, "state")).items().at(0).second, "momentum_buffer").to_tensor();
  ASSERT_TRUE(ops::as_sparse(buffer));
  EXPECT_EQ(buffer.dtype(), DType::kFloat32);
  EXPECT_EQ(difference(dense(buffer), dense(autograd::grad(table))), 0);
}

TEST(SparseOptimizers, MasterWeightsFollowThem) {
  const auto half = [](const Tensor& tensor) { return tensor.to(DType::kFloat16); };
  for (const char* kind : {"sgd", "adagrad", "sparseadam"}) {
    const Tensor table = table_with_gradient(), narrow = half(call_by_name("aten::ones", Dims{4, 2}));
    autograd::set_requires_grad(narrow);
    autograd::set_grad(narrow, call_by_name("aten::to.dtype", autograd::grad(table),
                                            static_cast<int64_t>(DType::kFloat16), false, false, Value()));
    ASSERT_TRUE(ops::as_sparse(autograd::grad(narrow)));
    const auto reference = make_optimizer(kind, {{{table}, {}}}, {{"lr", 1e-4}});
    const auto optimizer = make_optimizer(kind, {{{narrow}, {}}}, {{"lr", 1e-4}});
    optimizer->use_master_weights();
    // Steps of the 16-bit parameter alone would be rounded away.
    for (int step = 0; step < 8; ++step) {
      reference->step();
      optimizer->step();
      EXPECT_EQ(difference(narrow, half(table)), 0) << kind << step;
    }
  }
}

// The momentum buffer of a dense step goes on.
TEST(SparseOptimizers, GradientsMayBeDenseAndSparseInTurns) {
  for (const bool maximize : {false, true}) {
    const Tensor table = table_with_gradient(), copy = table_with_gradient();
    const Tensor sparse = autograd::grad(table);
    std::vector<std::unique_ptr<Optimizer>> optimizers;
    for (const Tensor& each : {table, copy}) {
      optimizers.push_back(
          make_optimizer("sgd", {{{each}, {}}}, {{"lr", 0.1}, {"momentum", 0.9}, {"maximize", maximize}}));
    }
    for (int step = 0; step < 4; ++step) {
      autograd::set_grad(table, step % 2 == 0 ? dense(sparse) : sparse);
      autograd::set_grad(copy, dense(sparse));
      for (const auto& optimizer : optimizers) optimizer->step();
      EXPECT_LT(difference(table, copy), 1e-5) << maximize << step;
    }
  }
}

TEST(SparseOptimizers, LBFGSTakesThemAsDenseOnes) {
  const Tensor table = table_with_gradient(), copy = table_with_gradient();
  autograd::set_grad(copy, dense(autograd::grad(copy)));
  for (const Tensor& each : {table, copy}) {
    LBFGS optimizer({each}, {.lr = 0.1, .max_iter = 2});
    optimizer.step([&] { return Tensor::scalar(1.0F); });
  }
  EXPECT_EQ(difference(table, copy), 0);
  EXPECT_GT(difference(table, call_by_name("aten::ones_like", table)), 0);
}

}  // namespace
}  // namespace tensord::nn::sparse_optimizers_test
