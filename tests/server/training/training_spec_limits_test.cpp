// Every number of a training job at its limits and beyond, and every field in the wrong place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/nn/optim/optimizer_info.h"
#include "server/training/jobs/job_json.h"
#include "server/training/jobs/job_spec.h"
#include "server/training/learning_rate.h"

namespace tensord::server::training_spec_limits_test {
namespace {

using Json = nlohmann::json;
using Pointer = Json::json_pointer;

constexpr const char* kGood =
    R"({"model": {"name": "m"}, "data": {"file": "d.npz"}, "loss": {"builtin": "mse", "label": "y"}, "epochs": 1})";
constexpr const char* kStreamed = R"({"data": {"file": null, "streamed": true}, "epochs": null})";
constexpr double kWithoutEnd = std::numeric_limits<double>::infinity();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
constexpr double kMaxSteps = static_cast<double>(int64_t{1} << 48);

Json with(const char* change) {
  Json json = Json::parse(kGood);
  json.merge_patch(Json::parse(change));
  return json;
}

JobSpec checked(const Json& json) {
  JobSpec spec = job_spec_from_json(json);
  check_job_spec(spec);
  return spec;
}

std::string error_of(const Json& json) {
  try {
    checked(json);
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + " " + error.what();
  }
  return "none";
}

struct Bounds {
  const char* field;  // path with dots
  double min, max;
  const char* others = "{}";  // the other fields that a job with this field needs
};

std::string pointer_of(std::string field) {
  for (char& c : field) c = c == '.' ? '/' : c;
  return "/" + field;
}

void expect_bounds(const Bounds& bounds, bool is_whole) {
  const auto error_with = [&](double value) {
    Json json = with(bounds.others);
    Json& place = json[Pointer(pointer_of(bounds.field))];
    if (is_whole) {
      place = static_cast<int64_t>(value);
    } else if (value == kWithoutEnd) {
      place = "Infinity";
    } else {
      place = value;
    }
    return error_of(json);
  };
  const std::string wrong = std::string("INVALID_ARGUMENT ") + bounds.field + ": must be ";
  const double below = is_whole ? bounds.min - 1 : std::nextafter(bounds.min, -kWithoutEnd);
  const double above = is_whole ? bounds.max + 1 : std::nextafter(bounds.max, kWithoutEnd);
  EXPECT_EQ(error_with(bounds.min), "none") << bounds.field;
  EXPECT_TRUE(error_with(below).starts_with(wrong)) << bounds.field << " " << below << ": " << error_with(below);
  EXPECT_TRUE(error_with(above).starts_with(wrong)) << bounds.field << " " << above << ": " << error_with(above);
  if (bounds.max == kWithoutEnd) return;
  EXPECT_EQ(error_with(bounds.max), "none") << bounds.field;
}

TEST(JobSpecLimitsTest, WholeNumbersEndWhereTheyShould) {
  const Bounds fields[] = {
      {"data.stream_timeout_seconds", 0, 86400 * 365},
      {"optimizer.max_iter", 1, 10000, R"({"optimizer": {"name": "lbfgs"}})"},
      {"optimizer.history_size", 1, 10000, R"({"optimizer": {"name": "lbfgs"}})"},
      {"schedule.warmup_steps", 0, kMaxSteps},
      {"schedule.step_size", 1, kMaxSteps, R"({"schedule": {"name": "step"}})"},
      {"schedule.t_max", 0, kMaxSteps, R"({"schedule": {"name": "cosine"}})"},
      {"schedule.patience", 0, kMaxSteps},
      {"evaluation.every_steps", 0, kMaxSteps},
      {"evaluation.batch_size", 0, 1 << 24},
      {"epochs", 0, 4294967296.0, R"({"steps": 1})"},
      {"steps", 0, kMaxSteps},
      {"batch_size", 0, 1 << 24},
      {"checkpoints.every_steps", 0, kMaxSteps},
      {"checkpoints.every_seconds", 0, kMaxSteps},
      {"checkpoints.keep", 0, 1000},
      {"resources.threads", 0, 1024},
      {"distribution.world_size", 0, 1024, R"({"batch_size": 1024})"},
      {"distribution.processes_per_host", 0, 1024, R"({"distribution": {"world_size": 1024}, "batch_size": 1024})"},
      {"distribution.max_restarts", 0, 1000, R"({"distribution": {"world_size": 2}})"},
      {"distribution.timeout_seconds", 0, 86400, R"({"distribution": {"world_size": 2}})"},
      {"distribution.join_timeout_seconds", 0, 86400,
       R"({"distribution": {"world_size": 2, "processes_per_host": 1}})"},
      {"distribution.zero", 0, 1, R"({"distribution": {"world_size": 2}})"},
      {"distribution.compression_rank", 0, 1024, R"({"distribution": {"world_size": 2, "compression": "powersgd"}})"},
      {"distribution.compression_start_step", 2, kMaxSteps,
       R"({"distribution": {"world_size": 2, "compression": "powersgd"}})"},
      {"distribution.min_world_size", 0, 2, R"({"distribution": {"world_size": 2, "processes_per_host": 1}})"},
  };
  for (const Bounds& field : fields) expect_bounds(field, /*is_whole=*/true);
}

TEST(JobSpecLimitsTest, RealNumbersEndWhereTheyShould) {
  const char* const sgd = R"({"optimizer": {"name": "sgd"}})";
  const Bounds fields[] = {
      {"loss.label_smoothing", 0, 1, R"({"loss": {"builtin": "cross_entropy"}})"},
      {"loss.delta", kSmallest, kWithoutEnd, R"({"loss": {"builtin": "huber"}})"},
      {"optimizer.lr", kSmallest, kWithoutEnd},
      {"optimizer.weight_decay", 0, kWithoutEnd},
      {"optimizer.momentum", 0, kWithoutEnd, sgd},
      {"optimizer.dampening", 0, kWithoutEnd, sgd},
      {"optimizer.beta1", 0, std::nextafter(1.0, 0.0)},
      {"optimizer.beta2", 0, std::nextafter(1.0, 0.0)},
      {"optimizer.eps", 0, kWithoutEnd},
      {"optimizer.alpha", 0, kWithoutEnd, R"({"optimizer": {"name": "rmsprop"}})"},
      {"optimizer.lr_decay", 0, kWithoutEnd, R"({"optimizer": {"name": "adagrad"}})"},
      {"schedule.warmup_factor", 0, 1},
      {"schedule.gamma", kSmallest, kWithoutEnd},
      {"schedule.min_lr", 0, kWithoutEnd},
      {"schedule.max_lr", kSmallest, kWithoutEnd},
      {"schedule.pct_start", 0, 1},
      {"schedule.end_factor", 0, 1},
      {"schedule.factor", 0, 1},
      {"clipping.norm", 0, kWithoutEnd},
      {"clipping.value", 0, kWithoutEnd},
      {"evaluation.fraction", 0, std::nextafter(1.0, 0.0)},
  };
  for (const Bounds& field : fields) expect_bounds(field, /*is_whole=*/false);
  for (const char* name : {"lr", "weight_decay", "momentum"}) {
    const auto error_with = [&](double value) {
      Json json = with(sgd);
      json["optimizer"]["groups"] = Json::array({{{"pattern", "*"}, {name, value}}});
      return error_of(json);
    };
    EXPECT_EQ(error_with(0), "none") << name;
    const std::string wrong = std::string("INVALID_ARGUMENT optimizer.groups.") + name + ": must be ";
    EXPECT_TRUE(error_with(-kSmallest).starts_with(wrong)) << error_with(-kSmallest);
  }
  EXPECT_EQ(error_of(with(R"({"evaluation": {"fraction": 0.1}, "publish": {"bar": "NaN"}})")),
            "INVALID_ARGUMENT publish.bar: must be a number");
}

TEST(JobSpecLimitsTest, FieldsThatDoNotGoTogetherAreNamed) {
  // The change to a valid job, and the start of the error message.
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"model": {"name": null}})", "model: needs"},
      {R"({"model": {"upload_id": "a/b"}})", "model.upload_id: "},
      {R"({"model": {"upload_id": "u", "version": 1}})", "model.version: an upload"},
      {R"({"data": {"file": null}})", "data: needs"},
      {R"({"loss": {"builtin": null, "method": "loss", "delta": 1}})", "loss.delta: is not for a method"},
      {R"({"loss": {"builtin": "bce", "ignore_index": 1}})", "loss.ignore_index: is not for bce"},
      {R"({"loss": {"method": "loss"}})", "loss: needs either"},
      {R"({"optimizer": {"name": "adam", "groups": [{"pattern": "*", "momentum": 1}]}})",
       "optimizer.groups.momentum: "},
      {R"({"optimizer": {"name": "sgd", "nesterov": true, "momentum": 1, "dampening": 1}})", "optimizer.nesterov: "},
      {R"({"optimizer": {"name": "sgd", "nesterov": true, "momentum": 0}})", "optimizer.nesterov: "},
      {R"({"schedule": {"name": "multi_step"}})", "schedule.milestones: needs 1 to 1024"},
      {R"({"schedule": {"name": "multi_step", "milestones": [0, 1]}})", "schedule.milestones: must be above 0"},
      {R"({"schedule": {"name": "plateau", "metric": "mae"}, "evaluation": {"fraction": 0.1}})", "schedule.metric: "},
      {R"({"evaluation": {"file": "../e.npz"}})", "evaluation.file: "},
      {R"({"evaluation": {"fraction": 0.1, "metrics": ["mae"]}, "loss": {"builtin": null, "method": "l", "label": null}})",
       "evaluation.metrics: mae needs loss.label"},
      {R"({"model": {"name": null, "upload_id": "u"}, "publish": {"when": "at_end"}})", "publish.model: needed"},
      {R"({"publish": {"when": "at_end", "bar": 1}})", "publish.metric: there is no evaluation"},
      {R"({"distribution": {"processes_per_host": 1}})", "distribution.world_size: needed"},
      {R"({"distribution": {"max_restarts": 0}})", "distribution.world_size: needed"},
      {R"({"distribution": {"timeout_seconds": 1}})", "distribution.world_size: needed"},
      {R"({"distribution": {"join_timeout_seconds": 1}})", "distribution.world_size: needed"},
      {R"({"distribution": {"hosts": ["a"]}})", "distribution.world_size: needed"},
      {R"({"distribution": {"backend": "gloo"}})", "distribution.world_size: needed"},
      {R"({"distribution": {"min_world_size": 1}})", "distribution.world_size: needed"},
      {R"({"distribution": {"sync_batch_norm": true}})", "distribution.world_size: needed"},
      {R"({"distribution": {"zero": 1}})", "distribution.world_size: needed"},
      {R"({"distribution": {"compression": "fp16"}})", "distribution.world_size: needed"},
      {R"({"distribution": {"world_size": 2, "compression": "zip"}})", "distribution.compression: 'zip' is not one of"},
      {R"({"distribution": {"world_size": 2, "compression": "fp16", "compression_rank": 2}})",
       "distribution.compression_rank: is for powersgd alone"},
      {R"({"distribution": {"world_size": 2, "compression_start_step": 5}})",
       "distribution.compression_start_step: is for powersgd alone"},
      {R"({"data": {"file": "d.npz\u0000"}})", "data.file: "},
      {R"({"evaluation": {"fraction": "NaN"}})", "evaluation.fraction: "},
      {R"({"distribution": {"world_size": 2, "min_world_size": 1}})", "distribution.min_world_size: all ranks"},
      {R"({"distribution": {"world_size": 2, "hosts": ["a"]}})", "distribution.hosts: all ranks run on this host"},
      {R"({"distribution": {"world_size": 2, "join_timeout_seconds": 1}})",
       "distribution.join_timeout_seconds: all ranks"},
      {R"({"distribution": {"world_size": 2, "processes_per_host": 3}})", "distribution.processes_per_host: more than"},
      {R"({"distribution": {"world_size": 4, "processes_per_host": 1, "hosts": ["a", "b"]}})",
       "distribution.hosts: 3 other hosts are needed, got 2"},
      {R"({"distribution": {"world_size": 3, "processes_per_host": 1, "hosts": ["a", "a"]}})",
       "distribution.hosts: 'a' is"},
      {R"({"distribution": {"world_size": 3, "processes_per_host": 1, "hosts": ["a", ""]}})",
       "distribution.hosts: '' is"},
      {R"({"distribution": {"world_size": 3, "processes_per_host": 1, "hosts": ["a", "/"]}})",
       "distribution.hosts: '/' is"},
      {R"({"distribution": {"world_size": 2}, "batch_size": 1})", "distribution.world_size: 2 ranks have no row"},
      {R"({"distribution": {"world_size": 2}, "loss": {"builtin": "nll", "ignore_index": 1}})",
       "loss.ignore_index: each"},
  };
  for (const auto& [change, message] : wrong) {
    EXPECT_TRUE(error_of(with(change)).starts_with(std::string("INVALID_ARGUMENT ") + message))
        << change << "\n"
        << error_of(with(change));
  }
  EXPECT_TRUE(error_of(with(R"({"distribution": {"world_size": 2}, "optimizer": {"name": "lbfgs"}})"))
                  .starts_with("UNIMPLEMENTED distribution: lbfgs"));
}

TEST(JobSpecLimitsTest, FieldsThatGoTogether) {
  for (const char* change :
       {R"({"schedule": {"by_epoch": true}})", R"({"distribution": {"world_size": 2, "zero": 1}})",
        R"({"distribution": {"world_size": 1}, "loss": {"builtin": "nll", "ignore_index": 1}})",
        R"({"distribution": {"world_size": 2}, "loss": {"builtin": "nll"}})",
        R"({"distribution": {"world_size": 2, "sync_batch_norm": true, "compression": "bf16"}})"}) {
    EXPECT_EQ(error_of(with(change)), "none") << change;
  }
  const JobSpec spec = checked(with(R"({"distribution": {"world_size": 2, "compression": "powersgd"}})"));
  EXPECT_EQ(spec.distribution.compression_rank, 1);
  EXPECT_EQ(spec.distribution.compression_start_step, 1000);
}

TEST(JobSpecLimitsTest, StreamedDataHasNoFileOrderOrEpochs) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"data": {"shuffle": true}})", "INVALID_ARGUMENT data.shuffle: "},
      {R"({"data": {"drop_last": true}})", "INVALID_ARGUMENT data.drop_last: "},
      {R"({"data": {"file": "d.npz"}})", "INVALID_ARGUMENT data: "},
      {R"({"epochs": 1})", "INVALID_ARGUMENT epochs: streamed"},
      {R"({"schedule": {"by_epoch": true}})", "INVALID_ARGUMENT schedule.by_epoch: "},
      {R"({"schedule": {"name": "one_cycle"}})", "INVALID_ARGUMENT schedule: one_cycle needs"},
      {R"({"schedule": {"name": "cosine"}})", "INVALID_ARGUMENT schedule: cosine needs"},
      {R"({"schedule": {"name": "linear"}})", "INVALID_ARGUMENT schedule: linear needs"},
      {R"({"evaluation": {"fraction": 0.1}})", "INVALID_ARGUMENT evaluation.fraction: streamed"},
      {R"({"distribution": {"world_size": 2, "backend": "mpi"}})", "UNIMPLEMENTED distribution.backend: mpi"},
      {R"({"distribution": {"world_size": 2, "backend": "nccl"}})", "UNIMPLEMENTED distribution.backend: nccl"},
      {R"({"distribution": {"world_size": 2, "backend": "ucc"}})", "INVALID_ARGUMENT distribution.backend: 'ucc'"},
  };
  Json good = with(kStreamed);
  for (const auto& [change, message] : wrong) {
    Json json = good;
    json.merge_patch(Json::parse(change));
    EXPECT_TRUE(error_of(json).starts_with(message)) << change << "\n" << error_of(json);
  }
  for (const char* change :
       {R"({"schedule": {"name": "cosine", "t_max": 5}})", R"({"schedule": {"name": "linear"}, "steps": 1})",
        R"({"evaluation": {"file": "e.npz"}})", R"({"distribution": {"world_size": 2}, "batch_size": 1})",
        R"({"schedule": {"name": "one_cycle"}, "steps": 9})"}) {
    Json json = good;
    json.merge_patch(Json::parse(change));
    EXPECT_EQ(error_of(json), "none") << change;
  }
  const JobSpec spec = checked(good);
  EXPECT_FALSE(*spec.data.shuffle);
  EXPECT_EQ(spec.data.max_buffered_bytes, uint64_t{64} << 20);
  EXPECT_EQ(spec.data.stream_timeout_seconds, 60);
  good.merge_patch(Json::parse(R"({"data": {"max_buffered_bytes": 5, "stream_timeout_seconds": 7}})"));
  EXPECT_EQ(checked(good).data.max_buffered_bytes, 5u);
  EXPECT_EQ(checked(good).data.stream_timeout_seconds, 7);
  EXPECT_EQ(checked(Json::parse(kGood)).data.max_buffered_bytes, 0u);
}

TEST(JobSpecLimitsTest, ListsAndTextsEndWhereTheyShould) {
  const auto error_with = [](const char* field, const Json& value, const char* others = "{}") {
    Json json = with(others);
    json[Pointer(pointer_of(field))] = value;
    return error_of(json);
  };
  const auto expect_most = [&](const char* field, auto list_of, size_t max, const char* others = "{}") {
    EXPECT_EQ(error_with(field, list_of(max), others), "none") << field;
    EXPECT_TRUE(
        error_with(field, list_of(max + 1), others).starts_with(std::string("INVALID_ARGUMENT ") + field + ": "))
        << error_with(field, list_of(max + 1), others);
  };
  expect_most(
      "name", [](size_t n) { return Json(std::string(n, 'x')); }, 256);
  expect_most(
      "model.name", [](size_t n) { return Json(std::string(n, 'x')); }, 256);
  expect_most(
      "optimizer.groups",
      [](size_t n) {
        return Json(std::vector<Json>(n, {{"pattern", "*"}}));
      },
      1024);
  const auto ascending = [](size_t n) {
    Json list = Json::array();
    for (size_t i = 1; i <= n; ++i) list.push_back(i);
    return list;
  };
  expect_most("schedule.milestones", ascending, 1024, R"({"schedule": {"name": "multi_step"}})");
  expect_most(
      "evaluation.metrics", [](size_t n) { return Json(std::vector<std::string>(n, "mae")); }, 64,
      R"({"evaluation": {"fraction": 0.5}})");
  const auto inputs = [](size_t n) {
    Json map = Json::object();
    for (size_t i = 0; i < n; ++i) map["x" + std::to_string(i)] = "y";
    return map;
  };
  expect_most("data.inputs", inputs, 1024);
  const auto hosts = [](size_t n) {
    Json list = Json::array();
    for (size_t i = 0; i < n; ++i) list.push_back("h" + std::to_string(i));
    return list;
  };
  expect_most("distribution.hosts", hosts, 1024, R"({"distribution": {"world_size": 2, "processes_per_host": 1}})");
  for (const char* name : {"a/b", "a\\b", ".a", "a\x1f", "a\x7f"}) {
    EXPECT_TRUE(error_with("model.name", name).starts_with("INVALID_ARGUMENT model.name: ")) << name;
  }
  for (const char* name : {"a.b", "a b", "a~"}) EXPECT_EQ(error_with("model.name", name), "none") << name;
  EXPECT_EQ(top_n_of("top_1000_accuracy"), 1000);
  EXPECT_EQ(top_n_of("top_1001_accuracy"), 0);
}

TEST(JobSpecLimitsTest, ValuesOfOtherTypesAreRefused) {
  const std::tuple<const char*, const char*, const char*> wrong[] = {
      {"steps", R"("1x")", "steps: '1x' is not a whole number"},
      {"steps", R"("")", "steps: '' is not a whole number"},
      {"steps", "true", "steps: must be a whole number"},
      {"steps", "1.0", "steps: must be a whole number"},
      {"steps", "9223372036854775808", "steps: 9223372036854775808 is too large"},
      {"seed", "-1", "seed: must not be below 0, got -1"},
      {"optimizer.lr", R"("1")", "optimizer.lr: must be a number"},
      {"name", "1", "name: must be a text"},
      {"data.streamed", "0", "data.streamed: must be true or false"},
      {"schedule.milestones", "1", "schedule.milestones: must be a list"},
      {"schedule.milestones", R"(["a"])", "schedule.milestones: 'a' is not a whole number"},
      {"data.inputs", "[]", "data.inputs: must be an object"},
      {"data.inputs", R"({"x": 1})", "data.inputs.x: must be a text"},
      {"model", "1", "model: must be an object"},
      {"optimizer.groups", R"([{"x": 1}])", "optimizer.groups.x: there is no such field"},
  };
  for (const auto& [field, value, message] : wrong) {
    Json json = Json::parse(kGood);
    json[Pointer(pointer_of(field))] = Json::parse(value);
    EXPECT_EQ(error_of(json), std::string("INVALID_ARGUMENT ") + message) << field;
  }
  EXPECT_EQ(error_of(Json::array()), "INVALID_ARGUMENT job: must be an object");
  Json json = Json::parse(kGood);
  json["seed"] = "18446744073709551615";
  EXPECT_EQ(checked(json).seed, ~uint64_t{0});
  json["seed"] = ~uint64_t{0};
  EXPECT_EQ(checked(json).seed, ~uint64_t{0});
  json["steps"] = nullptr;
  EXPECT_EQ(error_of(json), "none");
}

// Every option of the engine's table with every optimizer: its limits, JSON types, and refusal of another optimizer's
// options.
TEST(JobSpecLimitsTest, EachOptimizerHasItsOwnOptions) {
  std::set<std::string> names;
  for (const nn::OptimizerInfo* info : nn::optimizer_infos()) {
    for (const nn::OptionInfo& option : info->options) names.insert(option.name);
  }
  EXPECT_GE(names.size(), 16u);
  for (const std::string& name : names) {
    const nn::OptionInfo& any = *nn::find_option(name);
    const bool is_flag = any.kind == nn::OptionInfo::Kind::kFlag;
    const bool is_count = any.kind == nn::OptionInfo::Kind::kInteger;
    const Json good = is_flag ? Json(true) : is_count ? Json(5) : Json(0.5);
    const Json wrong = is_flag ? Json(1) : is_count ? Json(1.5) : Json("1");
    for (const nn::OptimizerInfo* info : nn::optimizer_infos()) {
      SCOPED_TRACE(info->name + "." + name);
      Json json = Json::parse(kGood);
      json["optimizer"] = {{"name", info->name}, {name, good}};
      if (name == "nesterov") json["optimizer"]["momentum"] = 0.9;
      const std::string start = "INVALID_ARGUMENT optimizer." + name + ": ";
      if (name == "nesterov" && info->name != "sgd") {
        EXPECT_TRUE(error_of(json).ends_with(info->name + " has none")) << error_of(json);
        continue;
      }
      const nn::OptionInfo* const own = info->find(name);
      EXPECT_EQ(error_of(json), own ? "none" : start + info->name + " has none");
      if (own == nullptr) continue;
      EXPECT_EQ(own->kind, any.kind) << "an option is of one kind";
      json["optimizer"][name] = wrong;
      EXPECT_TRUE(error_of(json).starts_with(start + "must be ")) << error_of(json);
      if (is_flag) continue;
      json["optimizer"][name] = own->min - 1;
      EXPECT_TRUE(error_of(json).starts_with(start + "must be ")) << error_of(json);
    }
  }
}

// Whatever passes the check can be constructed: at the limits of every option, and with overrides in every group.
TEST(JobSpecLimitsTest, WhatPassesCanBeMade) {
  const auto made = [](const Json& json) {
    const Tensor parameter = Tensor::scalar(1.0);
    autograd::set_requires_grad(parameter);
    try {
      const JobSpec spec = checked(json);
      return make_job_optimizer(spec.optimizer, {{"w", parameter}}) ? std::string("made") : std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  for (const nn::OptimizerInfo* info : nn::optimizer_infos()) {
    for (const nn::OptionInfo& option : info->options) {
      if (option.kind == nn::OptionInfo::Kind::kFlag) continue;
      const double max = option.kind == nn::OptionInfo::Kind::kInteger ? 10000
                         : option.max == kWithoutEnd                   ? 1e300
                         : option.is_below_most                        ? std::nextafter(option.max, 0.0)
                                                                       : option.max;
      const double min = option.is_above_least ? std::nextafter(option.min, max) : option.min;
      for (const double value : {min, max}) {
        SCOPED_TRACE(info->name + "." + option.name + " " + std::to_string(value));
        Json json = Json::parse(kGood);
        const bool is_whole = option.kind == nn::OptionInfo::Kind::kInteger;
        const Json number = is_whole ? Json(static_cast<int64_t>(value)) : Json(value);
        json["optimizer"] = {{"name", info->name}, {option.name, number}};
        if (option.name != "lr" || value > 0) {
          EXPECT_EQ(made(json), "made");
        }
        if (info->needs_closure) continue;
        json["optimizer"] = {{"name", info->name},
                             {"groups", Json::array({{{"pattern", "*"}, {option.name, number}}})}};
        EXPECT_EQ(made(json), "made");
      }
      if (!option.is_below_most) continue;
      Json json = Json::parse(kGood);
      json["optimizer"] = {{"name", info->name}, {option.name, option.max}};
      const std::string text = made(json);
      EXPECT_TRUE(text.starts_with("optimizer." + option.name + ": must be ")) << text;
    }
  }
  const char* const nesterov = R"({"optimizer": {"name": "sgd", "nesterov": true, "momentum": 0.9,
                                   "groups": [{"pattern": "*", "momentum": 0}]}})";
  EXPECT_TRUE(made(with(nesterov)).starts_with("optimizer.groups.nesterov: ")) << made(with(nesterov));
}

}  // namespace
}  // namespace tensord::server::training_spec_limits_test
