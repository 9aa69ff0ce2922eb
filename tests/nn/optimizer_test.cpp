// Optimizers compared with a hundred steps of PyTorch's, their states in both directions, and their errors.
#include "core/nn/optim/optimizer.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/autograd/variable.h"
#include "core/base/parallel.h"
#include "core/nn/optim/clip_grad.h"
#include "core/ops/run.h"
#include "tests/nn/nn_cases.h"
#include "tests/support/places.h"

namespace tensord::nn::optimizer_test {
namespace {

using ops::Value;

Options options_of(const Value& dict) {
  Options options;
  for (const auto& [name, value] : dict_of(dict).items()) {
    options.set(name.to_string(), value);
  }
  return options;
}

// One case of run_optimizer: the same gradients, in the same steps.
class Replay {
 public:
  explicit Replay(const Value& saved) : saved_(saved) {
    for (const Tensor& tensor : tensors(item(saved, "start"))) {
      params_.push_back(tensor.clone(true));
      autograd::set_requires_grad(params_.back());
    }
    std::vector<ParamGroup> groups(2);
    groups[0].params = {params_[0], params_[1]};
    groups[1].params = {params_[2], params_[3]};
    groups[1].options = options_of(item(saved, "second"));
    optimizer_ = make_optimizer(item(saved, "kind").to_string(), std::move(groups), options_of(item(saved, "options")));
  }

  Optimizer& optimizer() { return *optimizer_; }
  const std::vector<Tensor>& params() const { return params_; }

  void step(int64_t number) {
    for (size_t i = 0; i < params_.size(); ++i) {
      const bool is_skipped = number % 5 == 4 && static_cast<int64_t>(i) == number / 5 % 4;
      autograd::set_grad(params_[i], is_skipped ? Tensor() : gradient(i, number));
    }
    optimizer_->step();
  }

  void expect_at(int64_t steps) {
    const auto& expected = dict_of(item(saved_, "at"));
    const std::ptrdiff_t at = expected.find(Value(steps));
    if (at < 0) return;
    const auto values = tensors(expected.items()[static_cast<size_t>(at)].second);
    for (size_t i = 0; i < params_.size(); ++i) {
      EXPECT_LT(difference(params_[i], values[i]), tolerance()) << name() << ", parameter " << i << ", step " << steps;
    }
  }

  double tolerance() const { return params_[0].dtype() == DType::kFloat64 ? 1e-12 : 2e-5; }
  std::string name() const {
    std::string text = item(saved_, "kind").to_string();
    for (const auto& [name, value] : dict_of(item(saved_, "options")).items()) text += " " + name.to_string();
    return text;
  }

 private:
  Tensor gradient(size_t i, int64_t step) const {
    const NoGradGuard without_grad;
    const Tensor noise = ops::call_by_name("aten::select.int", items(saved_, "noise")[i].to_tensor(), 0, step);
    return ops::call_by_name("aten::add.Tensor", noise, autograd::detach(params_[i]), 0.3);
  }

  const Value saved_;
  std::vector<Tensor> params_;
  std::unique_ptr<Optimizer> optimizer_;
};

TEST(Optimizer, TrajectoriesEqualPyTorch) {
  const Value cases = load_cases("optimizers");
  EXPECT_GE(get_items(cases, "cases").size(), 30u);
  for (const Value& saved : get_items(cases, "cases")) {
    Replay run(saved);
    for (int64_t step = 0; step < 100; ++step) {
      run.step(step);
      run.expect_at(step + 1);
    }
  }
}

TEST(Optimizer, ResumesFromAStateThatPyTorchSaved) {
  const Value cases = load_cases("optimizers");
  for (const Value& saved : get_items(cases, "cases")) {
    Replay run(saved);
    const NoGradGuard without_grad;
    const auto& at = dict_of(item(saved, "at"));
    const auto halfway = tensors(at.items()[static_cast<size_t>(at.find(Value(int64_t{50})))].second);
    for (size_t i = 0; i < halfway.size(); ++i) run.params()[i].copy_from(halfway[i]);
    run.optimizer().load_state_dict(item(saved, "state"));
    for (int64_t step = 50; step < 100; ++step) run.step(step);
    run.expect_at(100);
  }
}

TEST(Optimizer, ResumesFromItsOwnStateBitByBit) {
  const auto path = std::filesystem::temp_directory_path() / concat("optimizer_state_", getpid(), ".pt");
  const Value cases = load_cases("optimizers");
  for (const Value& saved : get_items(cases, "cases")) {
    Replay whole(saved), first(saved), second(saved);
    for (int64_t step = 0; step < 60; ++step) whole.step(step);
    for (int64_t step = 0; step < 33; ++step) first.step(step);
    jit::save_torch_file(path, first.optimizer().state_dict());
    second.optimizer().load_state_dict(jit::load_torch_file(path));
    for (size_t i = 0; i < 4; ++i) second.params()[i].copy_from(first.params()[i]);
    for (int64_t step = 33; step < 60; ++step) second.step(step);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(difference(second.params()[i], whole.params()[i]), 0) << whole.name();
  }
  std::filesystem::remove(path);
}

TEST(Optimizer, PyTorchLoadsTheState) {
  const auto folder = std::filesystem::temp_directory_path() / concat("optimizer_states_", getpid());
  std::filesystem::create_directories(folder);
  int count = 0;
  const Value cases = load_cases("optimizers");
  for (const Value& saved : get_items(cases, "cases")) {
    Replay run(saved);
    for (int64_t step = 0; step < 50; ++step) run.step(step);
    jit::save_torch_file(folder / concat(count++, ".pt"), run.optimizer().state_dict());
  }
  const std::string source = std::filesystem::path(tests_folder()).parent_path();
  const std::string command = concat("cd '", source, "' && ", tests_python(), " -m tests.nn.check_states '",
                                     std::getenv("TENSORD_NN_CASES"), "' '", folder.string(), "'");
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::filesystem::remove_all(folder);
}

TEST(Optimizer, ResultsDoNotDependOnThreads) {
  for (const char* kind : {"sgd", "adam", "adamw", "rmsprop", "adagrad"}) {
    std::vector<Tensor> results;
    for (const int threads : {1, 3}) {
      const int before = thread_budget();
      set_thread_budget(threads);
      const Tensor param =
          ops::call_by_name("aten::linspace", -1, 1, 300007, Value(static_cast<int64_t>(DType::kFloat32)));
      const auto optimizer = make_optimizer(kind, {{{param}, {}}});
      for (int step = 0; step < 3; ++step) {
        autograd::set_grad(param, ops::call_by_name("aten::sin", autograd::detach(param)));
        optimizer->step();
      }
      results.push_back(param);
      set_thread_budget(before);
    }
    EXPECT_EQ(difference(results[0], results[1]), 0) << kind;
  }
}

TEST(Optimizer, GradientsInAnotherOrderOfMemory) {
  const Tensor start = ops::call_by_name("aten::reshape", ops::call_by_name("aten::arange", 24, Value(6)), Dims{4, 6});
  std::vector<Tensor> results;
  for (const bool is_transposed : {false, true}) {
    const Tensor param = start.clone();
    SGD sgd({param}, {.lr = 0.5, .momentum = 0.9});
    for (int step = 0; step < 3; ++step) {
      Tensor grad = autograd::detach(param).clone();
      if (is_transposed) {
        grad = Tensor::empty_strided(Dims{4, 6}, Dims{1, 4}, DType::kFloat32);
        grad.copy_from(param);
      }
      autograd::set_grad(param, grad);
      sgd.step();
    }
    results.push_back(param);
  }
  EXPECT_EQ(difference(results[0], results[1]), 0);
  // A parameter that is a strided view.
  const Tensor base = ops::call_by_name("aten::zeros", Dims{4, 12}, Value(6));
  const Tensor view = base.as_view({4, 6}, {12, 2}, 0);
  view.copy_from(start);
  SGD sgd({view}, {.lr = 0.5, .momentum = 0.9});
  for (int step = 0; step < 3; ++step) {
    autograd::set_grad(view, view.clone());
    sgd.step();
  }
  EXPECT_EQ(difference(view, results[0]), 0);
  EXPECT_EQ(base.as_view({4, 6}, {12, 2}, 1).contiguous().data<float>()[5], 0);
}

TEST(Optimizer, StepCallsTheClosureWithGradOn) {
  const Tensor param = Tensor::scalar(2.0);
  SGD sgd({param}, {.lr = 0.25});
  const NoGradGuard without_grad;
  const uint32_t version = param.version();
  const Tensor loss = sgd.step([&] {
    EXPECT_TRUE(is_grad_enabled());
    autograd::set_grad(param, Tensor::scalar(4.0));
    return Tensor::scalar(7.0);
  });
  EXPECT_EQ(loss.item_double(), 7.0);
  EXPECT_EQ(param.item_double(), 1.0);
  EXPECT_GT(param.version(), version);
}

TEST(Optimizer, ZeroGrad) {
  const Tensor a = Tensor::scalar(1.0), b = Tensor::scalar(1.0);
  SGD sgd({a, b}, {});
  autograd::set_grad(a, Tensor::scalar(3.0));
  sgd.zero_grad(false);
  EXPECT_EQ(autograd::grad(a).item_double(), 0.0);
  EXPECT_FALSE(autograd::grad(b).defined());
  sgd.zero_grad();
  EXPECT_FALSE(autograd::grad(a).defined());
}

TEST(Optimizer, OptionsOfTheConstructorAreThoseOfLaterGroups) {
  const Tensor a = Tensor::scalar(1.0), b = Tensor::scalar(1.0), c = Tensor::scalar(1.0);
  for (const bool by_name : {false, true}) {
    std::unique_ptr<Optimizer> sgd = std::make_unique<SGD>(std::vector{a}, SGDOptions{.lr = 0.5, .momentum = 0.25});
    if (by_name) sgd = make_optimizer("sgd", {{{a}, {}}}, {{"lr", 0.5}, {"momentum", 0.25}});
    sgd->add_param_group({{b}, {{"momentum", 0.75}}});
    EXPECT_EQ(sgd->param_groups()[1].options.number("lr"), 0.5);
    EXPECT_EQ(sgd->param_groups()[1].options.number("momentum"), 0.75);
    sgd->add_param_group({{c}, {}});
    EXPECT_EQ(sgd->param_groups()[2].options.number("momentum"), 0.25);
    EXPECT_EQ(sgd->defaults().number("lr"), 0.5);
  }
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

void expect_error(const std::function<void()>& call, const std::string& part) {
  EXPECT_THAT(error_of(call), ::testing::HasSubstr(part));
}

TEST(Optimizer, Errors) {
  const Tensor a = Tensor::scalar(1.0), b = Tensor::scalar(1.0), half = Tensor::scalar(1.0, DType::kFloat16);
  EXPECT_EQ(error_of([&] { SGD(std::vector<Tensor>()); }), "optimizer got an empty parameter list");
  EXPECT_EQ(error_of([&] { SGD({a}, {.lr = -1}); }), "Invalid learning rate: -1");
  EXPECT_EQ(error_of([&] { SGD({a}, {.nesterov = true}); }),
            "Nesterov momentum requires a momentum and zero dampening");
  EXPECT_EQ(error_of([&] { Adam({a}, {.betas = {0.9, 1.0}}); }), "Invalid beta parameter at index 1: 1");
  EXPECT_EQ(error_of([&] { RMSprop({a}, {.eps = NAN}); }), "Invalid epsilon value: nan");
  SGD sgd({a}, {});
  EXPECT_EQ(error_of([&] {
              sgd.add_param_group({{b, a}, {}});
            }),
            "some parameters appear in more than one parameter group");
  EXPECT_EQ(error_of([&] {
              sgd.add_param_group({{b, b}, {}});
            }),
            "optimizer contains a parameter group with duplicate parameters");
  EXPECT_EQ(error_of([&] { sgd.add_param_group({{b}, {{"rate", 1.0}}}); }), "SGD has no option \"rate\"");
  EXPECT_EQ(error_of([&] { sgd.add_param_group({{b}, {{"lr", "fast"}}}); }), "\"lr\": expected a number but got str");
  EXPECT_EQ(sgd.param_groups().size(), 1u);
  EXPECT_EQ(error_of([&] {
              LBFGS lbfgs({a}, {}), other({b}, {});
              lbfgs.add_param_group({{b}, {}});
            }),
            "LBFGS doesn't support per-parameter options (parameter groups)");
  expect_error([&] { make_optimizer("adamax", {{{a}, {}}}); }, "unknown optimizer \"adamax\"");
  SGD halves({half}, {});
  autograd::set_grad(half, Tensor::scalar(1.0, DType::kFloat16));
  expect_error([&] { halves.step(); }, "float16 cannot be trained");
  SGD two({Tensor::scalar(1.0), b}, {});
  expect_error([&] { two.load_state_dict(sgd.state_dict()); }, "doesn't match the size");
  expect_error([&] { sgd.load_state_dict(Value(int64_t{3})); }, "expected a dict");
}

TEST(LBFGS, TrajectoriesEqualPyTorch) {
  const Value cases = load_cases("lbfgs");
  for (const Value& saved : get_items(cases, "cases")) {
    const Tensor a = vector_of({-1.2, 1.0, 0.5}), b = vector_of({0.3, -0.7});
    Options options = options_of(item(saved, "options"));
    auto optimizer = make_optimizer("lbfgs", {{{a, b}, {}}}, options);
    int evaluations = 0;
    const auto closure = [&] {
      ++evaluations;
      std::vector<double> x(a.data<double>(), a.data<double>() + 3), g(5, 0.0);
      x.insert(x.end(), b.data<double>(), b.data<double>() + 2);
      double loss = 0;
      for (size_t i = 0; i + 1 < x.size(); ++i) {
        const double valley = x[i + 1] - x[i] * x[i];
        loss += 100 * valley * valley + (1 - x[i]) * (1 - x[i]);
        g[i] += -400 * x[i] * valley - 2 * (1 - x[i]);
        g[i + 1] += 200 * valley;
      }
      autograd::set_grad(a, vector_of({g[0], g[1], g[2]}));
      autograd::set_grad(b, vector_of({g[3], g[4]}));
      return Tensor::scalar(loss);
    };
    const auto losses = get_numbers(dict_of(saved), "losses");
    for (size_t step = 0; step < losses.size(); ++step) {
      const double loss = optimizer->step(closure).item_double();
      EXPECT_NEAR(loss, losses[step], 1e-6 * (1 + std::abs(losses[step]))) << step;
      const Tensor x = ops::call_by_name("aten::cat", std::vector<Tensor>{a, b}, 0);
      EXPECT_LT(difference(x, items(saved, "at")[step].to_tensor()), 1e-6) << step;
      // Continues from a state that PyTorch saved.
      if (step == 3) {
        EXPECT_EQ(item(item(optimizer->state_dict(), "state").to_dict()->items()[0].second, "func_evals").to_int(),
                  evaluations);
        optimizer = make_optimizer("lbfgs", {{{a, b}, {}}}, options);
        optimizer->load_state_dict(item(saved, "state"));
      }
    }
    EXPECT_EQ(evaluations, get_integer(dict_of(saved), "evaluations"));
  }
}

TEST(ClipGrad, EqualsPyTorch) {
  const Value saved = load_cases("clipping");
  const auto grads = tensors(item(saved, "grads"));
  std::vector<Tensor> params;
  const auto reset = [&] {
    params.clear();
    for (const Tensor& grad : grads) {
      params.push_back(Tensor::empty(grad.sizes(), grad.dtype()));
      autograd::set_grad(params.back(), grad.clone());
    }
    params.push_back(Tensor::scalar(1.0f));  // without a gradient
  };
  for (const Value& each : items(saved, "cases")) {
    reset();
    const auto& dict = dict_of(each);
    const double norm = clip_grad_norm_(params, get_number(dict, "max_norm"), get_number(dict, "norm_type"));
    EXPECT_NEAR(norm, get_number(dict, "norm"), 1e-5 * norm);
    const auto expected = tensors(item(each, "grads"));
    for (size_t i = 0; i < grads.size(); ++i) EXPECT_LT(difference(autograd::grad(params[i]), expected[i]), 1e-6);
  }
  reset();
  clip_grad_value_(params, 0.7);
  const auto clamped = tensors(item(saved, "clamped"));
  for (size_t i = 0; i < grads.size(); ++i) EXPECT_EQ(difference(autograd::grad(params[i]), clamped[i]), 0);
  EXPECT_EQ(clip_grad_norm_({}, 1.0), 0);
}

TEST(ClipGrad, NormDoesNotDependOnThreadsAndSeesEverything) {
  const Tensor param = Tensor::empty(Dims{500009}, DType::kFloat32);
  const Tensor grad = ops::call_by_name("aten::linspace", -3, 1, 500009, Value(static_cast<int64_t>(DType::kFloat32)));
  autograd::set_grad(param, grad);
  const int before = thread_budget();
  for (const double norm_type : {1.0, 2.0, 3.0, kInfinityNorm}) {
    set_thread_budget(1);
    const double one = grad_norm(std::span(&param, 1), norm_type);
    set_thread_budget(4);
    EXPECT_EQ(grad_norm(std::span(&param, 1), norm_type), one);
    double sum = 0;
    for (int64_t i = 0; i < grad.numel(); ++i) {
      const double x = std::abs(grad.data<float>()[i]);
      sum = std::isinf(norm_type) ? std::max(sum, x) : sum + std::pow(x, norm_type);
    }
    EXPECT_NEAR(one, std::isinf(norm_type) ? sum : std::pow(sum, 1 / norm_type), 1e-6 * one) << norm_type;
  }
  set_thread_budget(before);
  for (const int64_t at : {int64_t{0}, int64_t{77777}, grad.numel() - 1}) {
    const float kept = std::exchange(grad.data<float>()[at], NAN);
    for (const double norm_type : {1.0, 2.0, 3.0, kInfinityNorm}) {
      EXPECT_TRUE(std::isnan(grad_norm(std::span(&param, 1), norm_type))) << at << " " << norm_type;
    }
    grad.data<float>()[at] = kept;
  }
  grad.data<float>()[5] = INFINITY;
  expect_error([&] { clip_grad_norm_(std::span(&param, 1), 1.0, 2.0, true); },
               "is non-finite, so it cannot be clipped");
  EXPECT_EQ(grad.data<float>()[0], -3.0f);
}

}  // namespace
}  // namespace tensord::nn::optimizer_test
