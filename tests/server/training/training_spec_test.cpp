#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/training/jobs/job_json.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server::training_spec_test {
namespace {

using Json = nlohmann::json;

Json good() {
  return Json::parse(R"({"model": {"name": "m"}, "data": {"file": "d.npz"}, "loss": {"builtin": "mse", "label": "y"},
                         "epochs": 1})");
}

std::string error_of(const Json& json) {
  try {
    JobSpec spec = job_spec_from_json(json);
    check_job_spec(spec);
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + " " + error.what();
  }
  return "none";
}

TEST(JobSpecTest, FillsInDefaults) {
  JobSpec spec = job_spec_from_json(good());
  check_job_spec(spec);
  EXPECT_EQ(spec.optimizer.name, "adamw");
  EXPECT_EQ(spec.batch_size, 32);
  EXPECT_TRUE(*spec.data.shuffle);
  EXPECT_EQ(spec.checkpoints.every_seconds, 60);
  EXPECT_EQ(spec.checkpoints.keep, 2);
  EXPECT_EQ(spec.publish.when, "never");
  EXPECT_EQ(spec.publish.model, "m");
}

TEST(JobSpecTest, EveryFieldThatIsWrongIsNamed) {
  // The change to a valid job, and the field that the error message starts with.
  const std::pair<const char*, const char*> cases[] = {
      {R"({"model": {"name": ""}})", "model: "},
      {R"({"model": {"name": "../m"}})", "model.name: "},
      {R"({"model": {"version": -1}})", "model.version: "},
      {R"({"model": {"version": "x"}})", "model.version: "},
      {R"({"data": {"file": "/etc/passwd"}})", "data.file: "},
      {R"({"data": {"file": "a/../../b"}})", "data.file: "},
      {R"({"data": {"streamed": true}})", "data: "},
      {R"({"data": {"file": "", "streamed": true}, "epochs": 2})", "epochs: "},
      {R"({"data": {"shuffle": 1}})", "data.shuffle: "},
      {R"({"data": {"unknown": 1}})", "data.unknown: "},
      {R"({"loss": {"builtin": ""}})", "loss: "},
      {R"({"loss": {"builtin": "hinge"}})", "loss.builtin: "},
      {R"({"loss": {"label": ""}})", "loss.label: "},
      {R"({"loss": {"delta": 2}})", "loss.delta: "},
      {R"({"loss": {"label_smoothing": 0.1}})", "loss.label_smoothing: "},
      {R"({"optimizer": {"name": "lion"}})", "optimizer.name: "},
      {R"({"optimizer": {"lr": -1}})", "optimizer.lr: "},
      {R"({"optimizer": {"lr": "NaN"}})", "optimizer.lr: "},
      {R"({"optimizer": {"momentum": 0.9}})", "optimizer.momentum: "},
      {R"({"optimizer": {"name": "sgd", "nesterov": true}})", "optimizer.nesterov: "},
      {R"({"optimizer": {"groups": [{"freeze": true}]}})", "optimizer.groups.pattern: "},
      {R"({"optimizer": {"name": "lbfgs", "groups": [{"pattern": "*", "lr": 1}]}})", "optimizer.groups: "},
      {R"({"schedule": {"name": "sine"}})", "schedule.name: "},
      {R"({"schedule": {"name": "step"}})", "schedule.step_size: "},
      {R"({"schedule": {"name": "multi_step", "milestones": [5, 3]}})", "schedule.milestones: "},
      {R"({"schedule": {"name": "plateau"}})", "schedule.name: "},
      {R"({"schedule": {"name": "one_cycle", "warmup_steps": 5}})", "schedule.warmup_steps: "},
      {R"({"clipping": {"norm": -1}})", "clipping.norm: "},
      {R"({"evaluation": {"fraction": 1}})", "evaluation.fraction: "},
      {R"({"evaluation": {"fraction": 0.1, "file": "e.npz"}})", "evaluation: "},
      {R"({"evaluation": {"metrics": ["loss"]}})", "evaluation.metrics: "},
      {R"({"evaluation": {"fraction": 0.1, "metrics": ["top_0_accuracy"]}})", "evaluation.metrics: "},
      {R"({"epochs": 0})", "epochs: "},
      {R"({"epochs": -1})", "epochs: "},
      {R"({"steps": -1})", "steps: "},
      {R"({"batch_size": -5})", "batch_size: "},
      {R"({"batch_size": 1.5})", "batch_size: "},
      {R"({"checkpoints": {"keep": -1}})", "checkpoints.keep: "},
      {R"({"publish": {"when": "always"}})", "publish.when: "},
      {R"({"publish": {"when": "best"}})", "publish.metric: "},
      {R"({"publish": {"when": "at_end", "metric": "accuracy"}, "evaluation": {"fraction": 0.1}})", "publish.metric: "},
      {R"({"publish": {"model": "a/b"}})", "publish.model: "},
      {R"({"resources": {"threads": -1}})", "resources.threads: "},
      {R"({"bogus": 1})", "bogus: "},
  };
  for (const auto& [change, field] : cases) {
    Json json = good();
    json.merge_patch(Json::parse(change));
    EXPECT_EQ(error_of(json).find(std::string("INVALID_ARGUMENT ") + field), 0u) << change << "\n" << error_of(json);
  }
  EXPECT_EQ(error_of(good()), "none");
}

TEST(JobSpecTest, StatusKeepsItsValueAsJson) {
  JobStatus status;
  status.id = "m-1";
  status.spec = job_spec_from_json(good());
  check_job_spec(status.spec);
  status.spec.seed = ~uint64_t{0};
  status.spec.optimizer.options = {{"lr", 0.0}, {"amsgrad", 1}, {"initial_accumulator_value", 0.5}};
  status.spec.optimizer.groups = {{.pattern = "a.*", .freeze = true, .options = {{"weight_decay", 0.5}}}};
  status.spec.data.inputs = {{"x", "images"}};
  status.state = JobState::kPaused;
  status.progress.loss = 1.0 / 3;
  status.progress.seconds_left = -1;
  status.progress.metrics = {{"accuracy", 0.5}, {"loss", INFINITY}};
  const Json json = to_json(status);
  EXPECT_EQ(to_json(job_status_from_json(Json::parse(json.dump()))), json);
  EXPECT_EQ(job_status_from_json(json).spec.optimizer.options, status.spec.optimizer.options);
  EXPECT_EQ(job_status_from_json(json).progress.loss, 1.0 / 3);
}

TEST(JobSpecTest, WhatIsNullIsLeftOut) {
  Json json = good();
  json["publish"] = {{"bar", nullptr}};
  json["data"]["shuffle"] = nullptr;
  EXPECT_EQ(error_of(json), "none");
  EXPECT_FALSE(job_spec_from_json(json).publish.bar);
}

TEST(JobSpecTest, NamesOfOptimizersAreSmallLetters) {
  Json json = good();
  json["optimizer"] = {{"name", "SGD"}};
  EXPECT_TRUE(error_of(json).starts_with("INVALID_ARGUMENT optimizer.name: 'SGD' is not one of ")) << error_of(json);
}

TEST(JobSpecTest, NumbersAsJsonHasThem) {
  JobStatus status;
  status.spec = job_spec_from_json(good());
  status.spec.optimizer.options = {
      {"lr", -0.0},      {"amsgrad", 0},       {"nesterov", 1}, {"max_iter", 5},
      {"eps", INFINITY}, {"beta1", -INFINITY}, {"beta2", NAN},  {"of an older daemon", 0.5}};
  status.spec.evaluation.fraction = -0.0;
  const Json json = to_json(status);
  EXPECT_EQ(json["spec"]["optimizer"], Json::parse(R"({"lr": -0.0, "nesterov": true, "max_iter": 5,
      "eps": "Infinity", "beta1": "-Infinity", "beta2": "NaN", "of an older daemon": 0.5})"));
  EXPECT_TRUE(json["spec"]["optimizer"]["max_iter"].is_number_integer());
  EXPECT_TRUE(std::signbit(json["spec"]["evaluation"]["fraction"].get<double>()));
}

TEST(JobSpecTest, NumbersAreReadInEverySpelling) {
  const auto read = [](const char* change) {
    Json json = good();
    json.merge_patch(Json::parse(change));
    return job_spec_from_json(json);
  };
  // Unsigned fields accept signed JSON numbers.
  Json json = good();
  json["seed"] = int64_t{0};
  EXPECT_EQ(job_spec_from_json(json).seed, 0u);
  json["seed"] = int64_t{-1};
  EXPECT_EQ(error_of(json), "INVALID_ARGUMENT seed: must not be below 0, got -1");
  EXPECT_EQ(read(R"({"seed": "18446744073709551615"})").seed, ~uint64_t{0});
  EXPECT_EQ(read(R"({"batch_size": -7})").batch_size, -7);
  const auto max_iter = [&](const std::string& number) {
    const std::string text = R"({"optimizer": {"name": "lbfgs", "max_iter": )" + number + "}}";
    return read(text.c_str()).optimizer.options.at("max_iter");
  };
  EXPECT_EQ(max_iter("5.0"), 5);
  EXPECT_EQ(max_iter("-5.0"), -5);
  EXPECT_EQ(max_iter("9007199254740992.0"), 9007199254740992.0);
  for (const char* number : {"5.5", "9007199254740994.0", "-1e300"}) {
    json = good();
    json["optimizer"] = Json::parse(std::string(R"({"name": "lbfgs", "max_iter": )") + number + "}");
    EXPECT_EQ(error_of(json), "INVALID_ARGUMENT optimizer.max_iter: must be a whole number") << number;
  }
  EXPECT_EQ(read(R"({"evaluation": {"fraction": "-Infinity"}})").evaluation.fraction, -INFINITY);
  EXPECT_EQ(read(R"({"evaluation": {"fraction": "Infinity"}})").evaluation.fraction, INFINITY);
  EXPECT_FALSE(read(R"({"data": {"shuffle": null}})").data.shuffle);
  Json status = to_json(JobStatus());
  status["state"] = 5;
  try {
    job_status_from_json(status);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "state: must be a text");
  }
}

TEST(JobSpecTest, Patterns) {
  EXPECT_TRUE(matches_pattern("layer1.0.weight", "layer1.*"));
  EXPECT_TRUE(matches_pattern("layer1.0.weight", "*.weight"));
  EXPECT_TRUE(matches_pattern("layer1.0.weight", "l*1.?.w*t"));
  EXPECT_TRUE(matches_pattern("", "**"));
  EXPECT_FALSE(matches_pattern("layer10.weight", "layer?.weight"));
  EXPECT_FALSE(matches_pattern("weight.x", "*.weight"));
  EXPECT_FALSE(matches_pattern("a*c", "abc"));
  EXPECT_TRUE(matches_pattern("*abc", "*c"));  // a literal star in the name is an ordinary character
  EXPECT_TRUE(matches_pattern("a*", "a*?"));
  EXPECT_FALSE(matches_pattern("a", "a?"));
  EXPECT_TRUE(matches_pattern(std::string(10000, 'a') + "b", "*a*a*a*a*b"));
}

TEST(JobSpecTest, Metrics) {
  EXPECT_EQ(top_n_of("top_5_accuracy"), 5);
  EXPECT_EQ(top_n_of("top_1000_accuracy"), 1000);
  for (const char* name : {"top__accuracy", "top_0_accuracy", "top_x_accuracy", "top_-1_accuracy", "top_5x_accuracy",
                           "top_1001_accuracy", "accuracy", "top_5"}) {
    EXPECT_EQ(top_n_of(name), 0) << name;
  }
  Json json = good();
  json["loss"] = {{"builtin", "cross_entropy"}, {"label", "y"}};
  json["evaluation"] = {{"file", "e.npz"}, {"metrics", {"top_5_accuracy"}}};
  EXPECT_EQ(error_of(json), "none");
  json["evaluation"]["metrics"] = {"top_0_accuracy"};
  EXPECT_TRUE(error_of(json).starts_with("INVALID_ARGUMENT evaluation.metrics: 'top_0_accuracy'")) << error_of(json);
  EXPECT_TRUE(is_more_better("top_5_accuracy"));
  EXPECT_FALSE(is_more_better("rmse"));
}

}  // namespace
}  // namespace tensord::server::training_spec_test
