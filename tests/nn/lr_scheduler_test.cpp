// Schedules compared with PyTorch's values over a hundred steps, and their states.
#include "core/nn/optim/lr_scheduler.h"

#include <gmock/gmock.h>

#include "tests/nn/nn_cases.h"

namespace tensord::nn::lr_scheduler_test {
namespace {

using ops::Value;

std::unique_ptr<Optimizer> two_groups(const std::string& kind) {
  std::vector<ParamGroup> groups(2);
  groups[0].params = {Tensor::scalar(0.0f)};
  groups[1].params = {Tensor::scalar(0.0f)};
  groups[1].options.set("lr", 0.1);
  Options options{{"lr", 0.4}};
  if (kind == "SGD") options.set("momentum", 0.9);
  return make_optimizer(kind, std::move(groups), options);
}

template <class S, class... A>
std::unique_ptr<LRScheduler> make(Optimizer& optimizer, A... arguments) {
  return std::make_unique<S>(optimizer, arguments...);
}

OneCycleOptions one_cycle(const Value& arguments) {
  const auto& dict = dict_of(arguments);
  OneCycleOptions options;
  if (item(arguments, "max_lr").is_list())
    options.max_lr = get_numbers(dict, "max_lr");
  else
    options.max_lr = {get_number(dict, "max_lr")};
  if (find_item(dict, "total_steps")) {
    options.total_steps = get_integer(dict, "total_steps");
    return options;
  }
  options.epochs = get_integer(dict, "epochs");
  options.steps_per_epoch = get_integer(dict, "steps_per_epoch");
  options.pct_start = get_number(dict, "pct_start");
  options.is_linear = item(arguments, "anneal_strategy").to_string() == "linear";
  options.three_phase = get_bool(dict, "three_phase");
  options.div_factor = get_number(dict, "div_factor");
  options.final_div_factor = get_number(dict, "final_div_factor");
  return options;
}

std::vector<std::unique_ptr<LRScheduler>> sequence(Optimizer& o, const std::string& name) {
  std::vector<std::unique_ptr<LRScheduler>> parts;
  if (name == "Sequential") {
    parts.push_back(make<LinearLR>(o, 0.1, 1.0, 10));
    parts.push_back(make<CosineAnnealingLR>(o, 30));
    parts.push_back(make<ExponentialLR>(o, 0.9));
  } else {
    parts.push_back(make<CosineAnnealingWarmRestarts>(o, 5));
    parts.push_back(make<StepLR>(o, 3));
  }
  return parts;
}

// The schedules of a case, in stepping order.
std::vector<std::unique_ptr<LRScheduler>> make_all(Optimizer& o, const std::string& name, const Value& arguments) {
  const auto& dict = dict_of(arguments);
  const auto number = [&](const char* key) { return get_number(dict, key); };
  const auto integer = [&](const char* key) { return get_integer(dict, key); };
  std::vector<std::unique_ptr<LRScheduler>> made;
  if (name == "StepLR") made.push_back(make<StepLR>(o, integer("step_size"), number("gamma")));
  if (name == "MultiStepLR") {
    std::vector<int64_t> milestones;
    for (const Value& each : items(arguments, "milestones")) milestones.push_back(each.to_int());
    made.push_back(make<MultiStepLR>(o, milestones, number("gamma")));
  }
  if (name == "ExponentialLR") made.push_back(make<ExponentialLR>(o, number("gamma")));
  if (name == "ConstantLR") made.push_back(make<ConstantLR>(o, number("factor"), integer("total_iters")));
  if (name == "LinearLR")
    made.push_back(make<LinearLR>(o, number("start_factor"), number("end_factor"), integer("total_iters")));
  if (name == "PolynomialLR") made.push_back(make<PolynomialLR>(o, integer("total_iters"), number("power")));
  if (name == "CosineAnnealingLR") made.push_back(make<CosineAnnealingLR>(o, integer("T_max"), number("eta_min")));
  if (name == "CosineAnnealingWarmRestarts")
    made.push_back(make<CosineAnnealingWarmRestarts>(o, integer("T_0"), integer("T_mult"), number("eta_min")));
  if (name == "OneCycleLR") made.push_back(make<OneCycleLR>(o, one_cycle(arguments)));
  if (name == "LambdaLR") {
    made.push_back(make<LambdaLR>(
        o, std::vector<LambdaLR::Lambda>{[](int64_t epoch) { return std::pow(0.9, static_cast<double>(epoch)); },
                                         [](int64_t epoch) { return 1.0 / static_cast<double>(1 + epoch); }}));
  }
  if (name == "Sequential")
    made.push_back(std::make_unique<SequentialLR>(o, sequence(o, name), std::vector<int64_t>{10, 40}));
  if (name == "SequentialRestarts")
    made.push_back(std::make_unique<SequentialLR>(o, sequence(o, name), std::vector<int64_t>{20}));
  if (name == "Chained") {
    made.push_back(make<LinearLR>(o, 0.5, 1.0, 9));
    made.push_back(make<ExponentialLR>(o, 0.95));
  }
  check(!made.empty(), "no schedule ", name);
  return made;
}

std::vector<double> numbers_of(const Optimizer& optimizer) {
  std::vector<double> numbers;
  for (const ParamGroup& group : optimizer.param_groups()) {
    numbers.push_back(group.options.number("lr"));
    numbers.push_back(group.options.has("momentum") ? group.options.number("momentum")
                                                    : group.options.pair("betas").first);
  }
  return numbers;
}

void expect_row(const Optimizer& optimizer, const Tensor& rows, int64_t row, const std::string& name) {
  const std::vector<double> got = numbers_of(optimizer);
  for (size_t i = 0; i < got.size(); ++i) {
    const double expected = rows.data<double>()[row * 4 + static_cast<int64_t>(i)];
    EXPECT_NEAR(got[i], expected, 1e-12 * (1 + std::abs(expected))) << name << ", step " << row;
  }
}

TEST(LRScheduler, EqualsPyTorch) {
  const Value cases = load_cases("schedules");
  for (const Value& saved : items(cases, "schedules")) {
    const std::string name = item(saved, "name").to_string();
    const auto optimizer = two_groups(item(saved, "kind").to_string());
    const auto made = make_all(*optimizer, name, item(saved, "arguments"));
    const Tensor rows = item(saved, "rows").to_tensor();
    ASSERT_EQ(rows.size(0), 101);
    for (int64_t step = 0; step < rows.size(0); ++step) {
      expect_row(*optimizer, rows, step, name);
      EXPECT_EQ(made.back()->last_lr()[0], numbers_of(*optimizer)[0]);
      if (step + 1 < rows.size(0))
        for (const auto& schedule : made) schedule->step();
    }
  }
}

TEST(LRScheduler, ResumesFromItsState) {
  const Value cases = load_cases("schedules");
  for (const Value& saved : items(cases, "schedules")) {
    const std::string name = item(saved, "name").to_string(), kind = item(saved, "kind").to_string();
    const auto first = two_groups(kind), second = two_groups(kind);
    const auto before = make_all(*first, name, item(saved, "arguments"));
    const auto after = make_all(*second, name, item(saved, "arguments"));
    for (int64_t step = 0; step < 37; ++step)
      for (const auto& schedule : before) schedule->step();
    second->load_state_dict(first->state_dict());
    for (size_t i = 0; i < before.size(); ++i) after[i]->load_state_dict(before[i]->state_dict());
    for (int64_t step = 37; step <= 100; ++step) {
      expect_row(*second, item(saved, "rows").to_tensor(), step, name);
      if (step < 100)
        for (const auto& schedule : after) schedule->step();
    }
  }
}

PlateauOptions plateau_options(const ops::DictObject& dict) {
  PlateauOptions options;
  const auto read = [&](const char* key, auto& target) {
    if (find_item(dict, key)) target = static_cast<std::remove_reference_t<decltype(target)>>(get_number(dict, key));
  };
  read("patience", options.patience);
  read("cooldown", options.cooldown);
  read("factor", options.factor);
  read("threshold", options.threshold);
  read("min_lr", options.min_lr);
  if (const Value* mode = find_item(dict, "mode")) options.maximize = mode->to_string() == "max";
  if (const Value* mode = find_item(dict, "threshold_mode")) options.is_threshold_relative = mode->to_string() == "rel";
  return options;
}

TEST(ReduceLROnPlateau, EqualsPyTorchAndResumes) {
  const Value cases = load_cases("schedules");
  for (const Value& saved : items(cases, "plateaus")) {
    const PlateauOptions options = plateau_options(dict_of(item(saved, "options")));
    const auto metrics = get_numbers(dict_of(saved), "metrics"), lrs = get_numbers(dict_of(saved), "lrs");
    EXPECT_NE(lrs.back(), 1.0);
    SGD first({Tensor::scalar(0.0f)}, {.lr = 1.0}), second({Tensor::scalar(0.0f)}, {.lr = 1.0});
    ReduceLROnPlateau schedule(first, options), resumed(second, options);
    for (size_t i = 0; i < metrics.size(); ++i) {
      schedule.step(metrics[i]);
      EXPECT_NEAR(schedule.last_lr()[0], lrs[i], 1e-15);
      if (i == 41) {
        second.load_state_dict(first.state_dict());
        resumed.load_state_dict(schedule.state_dict());
      } else if (i > 41) {
        resumed.step(metrics[i]);
        EXPECT_EQ(resumed.last_lr(), schedule.last_lr());
      }
    }
  }
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(LRScheduler, Errors) {
  const auto optimizer = two_groups("SGD");
  EXPECT_THAT(error_of([&] { StepLR(*optimizer, 0); }), ::testing::HasSubstr("positive step_size"));
  EXPECT_THAT(error_of([&] { LinearLR(*optimizer, 1.5); }), ::testing::HasSubstr("between 0 and 1"));
  EXPECT_EQ(error_of([&] { OneCycleLR(*optimizer, {.max_lr = {1.0}}); }),
            "You must define either total_steps OR (epochs AND steps_per_epoch)");
  EXPECT_EQ(error_of([&] {
              OneCycleLR(*optimizer, {.max_lr = {1, 2, 3}, .total_steps = 5});
            }),
            "expected 2 values for max_lr, got 3");
  Adagrad adagrad({Tensor::scalar(0.0f)}, {});
  EXPECT_EQ(error_of([&] { OneCycleLR(adagrad, {.max_lr = {1.0}, .total_steps = 5}); }),
            "optimizer must support momentum with `cycle_momentum` option enabled");
  OneCycleLR cycle(*optimizer, {.max_lr = {1.0}, .total_steps = 3});
  EXPECT_EQ(error_of([&] {
              for (int i = 0; i < 4; ++i) cycle.step();
            }),
            "Tried to step 5 times. The specified number of total steps is 3");
  EXPECT_THAT(error_of([&] { SequentialLR(*optimizer, {}, {}); }), ::testing::HasSubstr("one more than the number"));
  StepLR step(*optimizer, 3);
  EXPECT_EQ(error_of([&] { step.load_state_dict(ops::make_tuple({})); }), "schedule: expected a dict but got tuple");
  optimizer->add_param_group({{Tensor::scalar(1.0f)}, {}});
  EXPECT_THAT(error_of([&] { step.step(); }), ::testing::HasSubstr("since the schedule was made"));
  EXPECT_THAT(error_of([&] { ReduceLROnPlateau(*optimizer, {.factor = 1.5}); }), ::testing::HasSubstr("Factor"));
}

}  // namespace
}  // namespace tensord::nn::lr_scheduler_test
