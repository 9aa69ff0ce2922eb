#include "server/executor/ensemble_plan.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "server/executor/model_version.h"

namespace tensord::server {
namespace {

constexpr int kMaxEnsembleDepth = 16;
constexpr size_t kNone = SIZE_MAX;

std::string version_text(int64_t version) { return version < 0 ? "" : std::to_string(version); }

const TensorSpec* find_spec(const std::vector<TensorSpec>& specs, const std::string& name) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& it) { return it.answers_to(name); });
  return found == specs.end() ? nullptr : &*found;
}

// An ensemble that leads to itself would never end.
void check_depth(const std::string& name, const ModelConfig& config, const ModelDirectory& directory, int depth,
                 std::set<std::string>& seen) {
  check(depth <= kMaxEnsembleDepth, "ensemble '", name, "' lies deeper than ", kMaxEnsembleDepth, " ensembles");
  for (const EnsembleStepConfig& step : config.ensemble_steps) {
    check(step.model != name, "ensemble '", name, "' needs itself");
    const std::shared_ptr<ModelVersion> model = directory.find(step.model, version_text(step.version));
    if (!model->config().is_ensemble() || !seen.insert(step.model).second) continue;
    check_depth(name, model->config(), directory, depth + 1, seen);
  }
}

class Planner {
 public:
  Planner(const std::string& name, const ModelConfig& config, const ModelDirectory& directory)
      : name_(name), config_(config), directory_(directory) {}

  EnsemblePlan plan() {
    std::set<std::string> seen;
    check_depth(name_, config_, directory_, 1, seen);
    for (const EnsembleStepConfig& step : config_.ensemble_steps) add_step(step);
    check_makers();
    check_order();
    plan_.signature.platform = "ensemble";
    plan_.signature.max_batch_size = config_.max_batch_size;
    add_inputs();
    add_outputs();
    for (size_t i = 0; i < plan_.steps.size(); ++i) check_step(i);
    plan_.max_inflight = config_.ensemble_max_inflight;
    return std::move(plan_);
  }

 private:
  size_t tensor(const std::string& name) {
    const size_t index = plan_.tensor_named(name);
    if (index == plan_.tensors.size()) {
      plan_.tensors.push_back(name);
      makers_.push_back(kNone);
      is_taken_.push_back(false);
    }
    return index;
  }

  void add_step(const EnsembleStepConfig& config) {
    EnsemblePlan::Step step{
        .model = config.model, .version = version_text(config.version), .inputs = {}, .outputs = {}};
    models_.push_back(directory_.find(step.model, step.version));
    step.is_decoupled = models_.back()->config().is_decoupled;
    check(!step.is_decoupled || config_.is_decoupled, "ensemble '", name_,
          "' needs model_transaction_policy { decoupled: "
          "true }, as its model '",
          step.model, "' has");
    for (const auto& [inner, outer] : config.input_map) {
      step.inputs.push_back({inner, tensor(outer)});
      is_taken_[step.inputs.back().tensor] = true;
    }
    for (const auto& [inner, outer] : config.output_map) {
      step.outputs.push_back({inner, tensor(outer)});
      size_t& maker = makers_[step.outputs.back().tensor];
      check(maker == kNone, "ensemble '", name_, "': tensor '", outer, "' is made by two steps");
      maker = plan_.steps.size();
    }
    plan_.steps.push_back(std::move(step));
  }

  bool is_input(size_t tensor) const {
    return std::any_of(config_.inputs.begin(), config_.inputs.end(),
                       [&](const auto& input) { return input.name == plan_.tensors[tensor]; });
  }

  void check_makers() const {
    for (size_t i = 0; i < makers_.size(); ++i) {
      const bool is_made = makers_[i] != kNone;
      check(!is_made || !is_input(i), "ensemble '", name_, "': input '", plan_.tensors[i], "' is made by a step too");
      check(is_made || config_.inputs.empty() || is_input(i), "ensemble '", name_,
            "': no step and no input makes tensor '", plan_.tensors[i], "'");
    }
  }

  // Runs all steps in mind; those that are left wait for each other.
  void check_order() const {
    std::vector<bool> is_there(makers_.size()), is_done(plan_.steps.size());
    for (size_t i = 0; i < makers_.size(); ++i) is_there[i] = makers_[i] == kNone;
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t i = 0; i < plan_.steps.size(); ++i) {
        const auto& inputs = plan_.steps[i].inputs;
        if (is_done[i] ||
            !std::all_of(inputs.begin(), inputs.end(), [&](const auto& it) { return is_there[it.tensor]; }))
          continue;
        for (const auto& output : plan_.steps[i].outputs) is_there[output.tensor] = true;
        is_done[i] = moves = true;
      }
    }
    const auto stuck = std::find(is_done.begin(), is_done.end(), false);
    check(stuck == is_done.end(), "ensemble '", name_, "': step '",
          stuck == is_done.end() ? "" : plan_.steps[static_cast<size_t>(stuck - is_done.begin())].model,
          "' waits for a tensor that is made of its own outputs");
  }

  TensorSpec configured(const ModelConfig::TensorConfig& config) const {
    check(!config.has_reshape, "ensemble '", name_, "': reshape of '", config.name, "' is for the models of its steps");
    TensorSpec spec;
    spec.name = config.name;
    spec.is_optional = config.is_optional;
    if (!config.datatype.empty()) spec.datatype = parse_datatype(config.datatype);
    if (config.has_dims) {
      spec.shape.emplace();
      if (config_.max_batch_size > 0) spec.shape->push_back(-1);
      for (const int64_t dim : config.dims) spec.shape->push_back(dim);
    }
    return spec;
  }

  // What the configuration leaves open is as the model of a step has it.
  void complete(TensorSpec& spec, const TensorSpec& of, const Signature& model) const {
    if (!spec.datatype) spec.datatype = of.datatype;
    const bool has_same_batch = (model.max_batch_size > 0) == (config_.max_batch_size > 0);
    if (!spec.shape && has_same_batch) spec.shape = of.shape;
  }

  void add_inputs() {
    std::vector<TensorSpec> specs;
    for (const auto& input : config_.inputs) specs.push_back(configured(input));
    for (size_t i = 0; config_.inputs.empty() && i < makers_.size(); ++i) {
      if (makers_[i] != kNone) continue;
      specs.emplace_back();
      specs.back().name = plan_.tensors[i];
    }
    for (TensorSpec& spec : specs) {
      const size_t index = tensor(spec.name);  // one that no step takes is allowed
      plan_.inputs.push_back(index);
      for (size_t i = 0; i < plan_.steps.size(); ++i) {
        for (const auto& link : plan_.steps[i].inputs) {
          const TensorSpec* wanted = find_spec(models_[i]->signature().inputs, link.name);
          if (link.tensor == index && wanted) complete(spec, *wanted, models_[i]->signature());
        }
      }
      spec.takes_bytes = spec.datatype == DataType::kBytes;
      plan_.signature.inputs.push_back(spec);
    }
  }

  void add_outputs() {
    std::vector<TensorSpec> specs;
    for (const auto& output : config_.outputs) specs.push_back(configured(output));
    for (size_t i = 0; config_.outputs.empty() && i < makers_.size(); ++i) {
      if (makers_[i] == kNone || is_taken_[i]) continue;
      specs.emplace_back();
      specs.back().name = plan_.tensors[i];
    }
    check(!specs.empty(), "ensemble '", name_, "' has no output");
    for (TensorSpec& spec : specs) {
      const size_t index = plan_.tensor_named(spec.name);
      check(index < plan_.tensors.size() && makers_[index] != kNone, "ensemble '", name_, "': no step makes output '",
            spec.name, "'");
      plan_.outputs.push_back(index);
      const Signature& model = models_[makers_[index]]->signature();
      for (const auto& link : plan_.steps[makers_[index]].outputs) {
        const TensorSpec* made = find_spec(model.outputs, link.name);
        if (link.tensor == index && made) complete(spec, *made, model);
      }
      spec.takes_bytes = spec.datatype == DataType::kBytes;
      plan_.signature.outputs.push_back(spec);
    }
  }

  void check_step(size_t index) const {
    const EnsemblePlan::Step& step = plan_.steps[index];
    const Signature& model = models_[index]->signature();
    check(config_.max_batch_size <= model.max_batch_size || config_.max_batch_size == 0, "ensemble '", name_,
          "' allows maximum batch size ", config_.max_batch_size, ", but it contains model '", step.model,
          "' which only allows maximum batch size to be ", model.max_batch_size);
    for (const auto& link : step.inputs) check_input(index, link);
    for (const TensorSpec& spec : model.inputs) {
      const bool is_fed = std::any_of(step.inputs.begin(), step.inputs.end(),
                                      [&](const auto& link) { return spec.answers_to(link.name); });
      check(is_fed || spec.is_optional, "ensemble '", name_, "': input_map of step '", step.model, "' has no input '",
            spec.name, "'");
    }
    for (const auto& link : step.outputs) {
      check(find_spec(model.outputs, link.name) || !model.outputs_are_complete, "ensemble '", name_, "': model '",
            step.model, "' has no output '", link.name, "'");
    }
    check_ensemble_outputs(index);
  }

  void check_input(size_t index, const EnsemblePlan::Link& link) const {
    const EnsemblePlan::Step& step = plan_.steps[index];
    const TensorSpec* wanted = find_spec(models_[index]->signature().inputs, link.name);
    check(wanted != nullptr, "ensemble '", name_, "': model '", step.model, "' has no input '", link.name, "'");
    const size_t maker = makers_[link.tensor];
    if (maker == kNone) {
      const TensorSpec* given = find_spec(plan_.signature.inputs, plan_.tensors[link.tensor]);
      check_same(*given, *wanted, link.tensor, step.model);
      check(!given->is_optional || wanted->is_optional, "ensemble '", name_, "': input '", given->name,
            "' is optional, but model '", step.model, "' needs it");
      return;
    }
    for (const auto& made : plan_.steps[maker].outputs) {
      const TensorSpec* spec = find_spec(models_[maker]->signature().outputs, made.name);
      if (made.tensor == link.tensor && spec) check_same(*spec, *wanted, link.tensor, step.model);
    }
  }

  void check_ensemble_outputs(size_t index) const {
    const EnsemblePlan::Step& step = plan_.steps[index];
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      for (const auto& link : step.outputs) {
        const TensorSpec* made = find_spec(models_[index]->signature().outputs, link.name);
        if (link.tensor == plan_.outputs[i] && made)
          check_same(*made, plan_.signature.outputs[i], link.tensor, step.model);
      }
    }
  }

  // Whether one may be the other, as far as both are known.
  void check_same(const TensorSpec& a, const TensorSpec& b, size_t tensor, const std::string& model) const {
    check(!a.datatype || !b.datatype || a.datatype == b.datatype, "ensemble '", name_, "': tensor '",
          plan_.tensors[tensor], "' at model '", model, "' is ", a.datatype ? name_of(*a.datatype) : "", " and ",
          b.datatype ? name_of(*b.datatype) : "");
    if (!a.shape || !b.shape) return;
    bool fits = a.shape->size() == b.shape->size();
    for (size_t i = 0; fits && i < a.shape->size(); ++i) {
      fits = (*a.shape)[i] < 0 || (*b.shape)[i] < 0 || (*a.shape)[i] == (*b.shape)[i];
    }
    check(fits, "ensemble '", name_, "': tensor '", plan_.tensors[tensor], "' at model '", model, "' has shapes ",
          shape_text(*a.shape), " and ", shape_text(*b.shape));
  }

  static std::string shape_text(const Dims& shape) {
    std::string out = "[";
    for (size_t i = 0; i < shape.size(); ++i) out += concat(i ? "," : "", shape[i]);
    return out + "]";
  }

  const std::string& name_;
  const ModelConfig& config_;
  const ModelDirectory& directory_;
  EnsemblePlan plan_;
  std::vector<std::shared_ptr<ModelVersion>> models_;  // of each step
  std::vector<size_t> makers_;                         // of each tensor: the step, or kNone
  std::vector<bool> is_taken_;                         // by a step
};

// Its requests never come to a session: the steps' models have them.
class EnsembleModel final : public Model {
 public:
  explicit EnsembleModel(Signature signature) : signature_(std::move(signature)) {}
  const Signature& signature() const override { return signature_; }
  std::unique_ptr<ModelSession> make_session() const override {
    fail(ErrorCode::kInternal, "an ensemble has no session of its own");
  }

 private:
  const Signature signature_;
};

}  // namespace

size_t EnsemblePlan::tensor_named(const std::string& name) const {
  return static_cast<size_t>(std::find(tensors.begin(), tensors.end(), name) - tensors.begin());
}

EnsemblePlan plan_ensemble(const std::string& name, const ModelConfig& config, const ModelDirectory& directory) {
  return Planner(name, config, directory).plan();
}

std::unique_ptr<const Model> make_ensemble_model(const std::string& name, const ModelConfig& config,
                                                 const ModelDirectory& directory) {
  return std::make_unique<EnsembleModel>(plan_ensemble(name, config, directory).signature);
}

}  // namespace tensord::server
