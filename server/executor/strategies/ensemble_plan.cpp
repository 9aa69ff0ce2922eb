#include "server/executor/strategies/ensemble_plan.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "server/executor/model/configured_outputs.h"
#include "server/executor/model/model_version.h"

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

// The shape under which steps see an input or output of the ensemble.
const std::optional<Dims>& inner_shape(const TensorSpec& spec) { return spec.reshape ? spec.reshape : spec.shape; }

// Whether the dimensions from `from_a` and from `from_b` on are compatible.
bool may_be_same(const Dims& a, size_t from_a, const Dims& b, size_t from_b) {
  bool fits = a.size() - from_a == b.size() - from_b;
  for (size_t i = from_a, j = from_b; fits && i < a.size(); ++i, ++j) fits = a[i] < 0 || b[j] < 0 || a[i] == b[j];
  return fits;
}

// An ensemble that runs itself would never end.
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
    add_fits();
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

  // Simulates the run; steps that cannot start wait for each other.
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
    TensorSpec spec;
    spec.name = config.name;
    spec.is_optional = config.is_optional;
    apply_config(config, concat("ensemble '", name_, "'"), has_batches(), spec);
    return spec;
  }

  bool has_batches() const { return config_.max_batch_size > 0; }
  bool has_batches(size_t step) const { return models_[step]->signature().max_batch_size > 0; }
  // Whether the step that makes the tensor has a batch dimension.
  bool is_made_in_batches(size_t tensor) const {
    return makers_[tensor] == kNone ? has_batches() : has_batches(makers_[tensor]);
  }

  // Completes what the configuration leaves out from the step's model.
  void complete(TensorSpec& spec, const TensorSpec& of, const Signature& model) const {
    if (!spec.datatype) spec.datatype = of.datatype;
    if (!spec.encoded) spec.encoded = of.encoded;
    const bool has_same_batch = (model.max_batch_size > 0) == has_batches();
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
      const size_t index = tensor(spec.name);  // an input that no step uses is allowed
      plan_.inputs.push_back(index);
      for (size_t i = 0; i < plan_.steps.size(); ++i) {
        for (const auto& link : plan_.steps[i].inputs) {
          const TensorSpec* wanted = find_spec(models_[i]->signature().inputs, link.name);
          if (link.tensor == index && wanted) complete(spec, *wanted, models_[i]->signature());
        }
      }
      spec.takes_bytes = spec.datatype == DataType::kBytes;
      plan_.declared.resize(plan_.tensors.size());
      plan_.declared[index] = spec.datatype;
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
    // A model without a batch dimension runs rows one at a time, see BatchFit.
    check(config_.max_batch_size <= model.max_batch_size || model.max_batch_size == 0, "ensemble '", name_,
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
      check_same({given->datatype, inner_shape(*given), has_batches()}, as_seen(*wanted, index), link.tensor,
                 step.model);
      check(!given->is_optional || wanted->is_optional, "ensemble '", name_, "': input '", given->name,
            "' is optional, but model '", step.model, "' needs it");
      return;
    }
    for (const auto& made : plan_.steps[maker].outputs) {
      const TensorSpec* spec = find_spec(models_[maker]->signature().outputs, made.name);
      if (made.tensor == link.tensor && spec)
        check_same(as_seen(*spec, maker), as_seen(*wanted, index), link.tensor, step.model);
    }
  }

  void check_ensemble_outputs(size_t index) const {
    const EnsemblePlan::Step& step = plan_.steps[index];
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      for (const auto& link : step.outputs) {
        const TensorSpec* made = find_spec(models_[index]->signature().outputs, link.name);
        const TensorSpec& wanted = plan_.signature.outputs[i];
        if (link.tensor == plan_.outputs[i] && made)
          check_same(as_seen(*made, index), {wanted.datatype, inner_shape(wanted), has_batches()}, link.tensor,
                     step.model);
      }
    }
  }

  // A tensor's type and shape as one of its models sees it.
  struct Seen {
    const std::optional<DataType>& datatype;
    const std::optional<Dims>& shape;
    bool has_batch;
  };
  Seen as_seen(const TensorSpec& spec, size_t step) const { return {spec.datatype, spec.shape, has_batches(step)}; }

  // Checks that both descriptions are compatible as far as they are known, with or without the batch dimension.
  void check_same(const Seen& a, const Seen& b, size_t tensor, const std::string& model) const {
    check(!a.datatype || !b.datatype || a.datatype == b.datatype, "ensemble '", name_, "': tensor '",
          plan_.tensors[tensor], "' at model '", model, "' is ", a.datatype ? name_of(*a.datatype) : "", " and ",
          b.datatype ? name_of(*b.datatype) : "");
    if (!a.shape || !b.shape) return;
    const bool fits =
        may_be_same(*a.shape, 0, *b.shape, 0) || may_be_same(*a.shape, a.has_batch, *b.shape, b.has_batch);
    check(fits, "ensemble '", name_, "': tensor '", plan_.tensors[tensor], "' at model '", model, "' has shapes ",
          shape_string(*a.shape), " and ", shape_string(*b.shape));
  }

  static EnsemblePlan::BatchFit batch_fit(bool is_made_in_batches, bool is_taken_in_batches,
                                          const std::optional<Dims>& taken) {
    using Change = EnsemblePlan::BatchFit::Change;
    if (is_made_in_batches == is_taken_in_batches || !taken) return {};
    return {is_taken_in_batches ? Change::kAdd : Change::kTake, taken->size()};
  }

  void add_fits() {
    plan_.declared.resize(plan_.tensors.size());
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (auto& link : plan_.steps[i].inputs) {
        const TensorSpec* wanted = find_spec(models_[i]->signature().inputs, link.name);
        link.fit = batch_fit(is_made_in_batches(link.tensor), has_batches(i), wanted->shape);
      }
    }
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      plan_.output_fits.push_back(
          batch_fit(is_made_in_batches(plan_.outputs[i]), has_batches(), inner_shape(plan_.signature.outputs[i])));
    }
  }

  static std::string shape_string(const Dims& shape) {
    std::string out = "[";
    for (size_t i = 0; i < shape.size(); ++i) out += concat(i ? "," : "", shape[i]);
    return out + "]";
  }

  const std::string& name_;
  const ModelConfig& config_;
  const ModelDirectory& directory_;
  EnsemblePlan plan_;
  std::vector<std::shared_ptr<ModelVersion>> models_;  // per step
  std::vector<size_t> makers_;                         // per tensor: the step that makes it, or kNone
  std::vector<bool> is_taken_;                         // whether a step uses the tensor
};

// Requests of an ensemble never reach a session: the steps' models run them.
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

bool has_decoupled_step(const ModelConfig& config, const ModelDirectory& directory) {
  return std::any_of(config.ensemble_steps.begin(), config.ensemble_steps.end(), [&](const auto& step) {
    return directory.find(step.model, version_text(step.version))->config().is_decoupled;
  });
}

ClassLabels ensemble_labels(const ModelConfig& config, const ModelDirectory& directory) {
  ClassLabels labels = read_class_labels(config);
  for (const EnsembleStepConfig& step : config.ensemble_steps) {
    const std::shared_ptr<ModelVersion> model = directory.find(step.model, version_text(step.version));
    for (const auto& [inner, outer] : step.output_map) {
      const TensorSpec* spec = find_spec(model->signature().outputs, inner);
      const std::vector<std::string>& made = model->class_labels(spec ? spec->name : inner);
      if (!made.empty()) labels.try_emplace(outer, made);
    }
  }
  return labels;
}

EnsemblePlan plan_ensemble(const std::string& name, const ModelConfig& config, const ModelDirectory& directory) {
  return Planner(name, config, directory).plan();
}

std::unique_ptr<const Model> make_ensemble_model(const std::string& name, const ModelConfig& config,
                                                 const ModelDirectory& directory) {
  return std::make_unique<EnsembleModel>(plan_ensemble(name, config, directory).signature);
}

}  // namespace tensord::server
