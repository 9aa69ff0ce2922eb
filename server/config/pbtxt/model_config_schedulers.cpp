// Converts dynamic_batching, sequence_batching and ensemble_scheduling.
#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "server/config/pbtxt/model_config_reader.h"

namespace tensord::server {
namespace {

constexpr int kMaxSteps = 1000;
constexpr int32_t kMaxCandidates = 1 << 20;

using Sequence = inference::ModelSequenceBatching;

QueuePolicyConfig to_queue_policy(const inference::ModelQueuePolicy& policy, const std::string& origin) {
  QueuePolicyConfig out;
  check(inference::ModelQueuePolicy::TimeoutAction_IsValid(policy.timeout_action()), origin,
        ": unknown timeout_action of a queue policy");
  if (policy.timeout_action() == inference::ModelQueuePolicy::DELAY) {
    out.timeout_action = QueuePolicyConfig::TimeoutAction::kDelay;
  }
  out.default_timeout_us = policy.default_timeout_microseconds();
  out.allows_timeout_override = policy.allow_timeout_override();
  out.max_queue_size = policy.max_queue_size();
  return out;
}

void check_levels(const DynamicBatchingConfig& config, const std::string& origin) {
  const bool has_default =
      config.default_priority_level >= 1 && config.default_priority_level <= config.priority_levels;
  check(config.priority_levels == 0 || has_default, origin, ": dynamic_batching.default_priority_level must be 1 to ",
        config.priority_levels, ", got ", config.default_priority_level);
  for (const auto& [level, policy] : config.priority_queue_policies) {
    check(level >= 1 && level <= config.priority_levels, origin,
          ": dynamic_batching.priority_queue_policy: the level must be 1 to ", config.priority_levels, ", got ", level);
  }
}

// preserve_ordering forbids what would let a later request overtake: priorities and delayed timeouts.
void check_order(const DynamicBatchingConfig& config, const std::string& origin) {
  if (!config.preserves_ordering) return;
  check(config.priority_levels <= 1, origin,
        ": dynamic_batching: Only one priority level is allowed when 'preserve_ordering' is true");
  const auto delays = [](const QueuePolicyConfig& policy) {
    return policy.timeout_action == QueuePolicyConfig::TimeoutAction::kDelay;
  };
  const auto& policies = config.priority_queue_policies;
  const bool is_delayed = delays(config.default_queue_policy) ||
                          std::any_of(policies.begin(), policies.end(), [&](auto& it) { return delays(it.second); });
  check(!is_delayed, origin,
        ": dynamic_batching: Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true");
}

DynamicBatchingConfig to_dynamic_batching(const inference::ModelDynamicBatching& batching, int64_t max_batch_size,
                                          const std::string& origin) {
  DynamicBatchingConfig out;
  for (const int64_t size : batching.preferred_batch_size()) {
    check(size >= 1 && size <= max_batch_size, origin, ": dynamic_batching.preferred_batch_size must be 1 to ",
          max_batch_size, ", got ", size);
    out.preferred_batch_sizes.push_back(size);
  }
  out.max_queue_delay_us = batching.max_queue_delay_microseconds();
  out.preserves_ordering = batching.preserve_ordering();
  out.priority_levels = batching.priority_levels();
  out.default_priority_level = batching.default_priority_level();
  out.default_queue_policy = to_queue_policy(batching.default_queue_policy(), origin);
  for (const auto& [level, policy] : batching.priority_queue_policy()) {
    out.priority_queue_policies[level] = to_queue_policy(policy, origin);
  }
  check_levels(out, origin);
  check_order(out, origin);
  return out;
}

class SequenceReader {
 public:
  SequenceReader(const Sequence& message, const std::string& origin, const ModelConfig& config)
      : message_(message), origin_(concat(origin, ": sequence_batching")), config_(config) {}

  SequenceBatchingConfig read() {
    check(!config_.has_response_cache, origin_, ": response_cache cannot be used with sequences");
    if (message_.max_sequence_idle_microseconds() > 0) {
      out_.max_sequence_idle_us = message_.max_sequence_idle_microseconds();
    }
    out_.is_iterative = message_.iterative_sequence();
    for (const auto& input : message_.control_input()) read_control_input(input);
    for (const auto& state : message_.state()) read_state(state);
    if (message_.has_oldest()) {
      read_oldest(message_.oldest());
    } else {
      read_direct(message_.direct());
    }
    return std::move(out_);
  }

 private:
  using Kind = SequenceBatchingConfig::ControlKind;

  void take_input_name(const std::string& name, const char* what) {
    check(!name.empty(), origin_, ": ", what, " needs a name");
    check(names_.insert(name).second, origin_, ": input '", name, "' appears twice");
    for (const auto& input : config_.inputs) {
      check(input.name != name, origin_, ": '", name, "' is filled by the server and must not be an input too");
    }
  }

  void read_control_input(const Sequence::ControlInput& input) {
    take_input_name(input.name(), "control_input");
    check(input.control_size() == 1, origin_, ": control_input '", input.name(), "' needs one control, got ",
          input.control_size());
    read_control(input.name(), input.control(0));
  }

  void read_control(const std::string& name, const Sequence::Control& message) {
    SequenceBatchingConfig::Control control;
    control.name = name;
    switch (message.kind()) {
      case Sequence::Control::CONTROL_SEQUENCE_START: control.kind = Kind::kStart; break;
      case Sequence::Control::CONTROL_SEQUENCE_READY: control.kind = Kind::kReady; break;
      case Sequence::Control::CONTROL_SEQUENCE_END: control.kind = Kind::kEnd; break;
      case Sequence::Control::CONTROL_SEQUENCE_CORRID: control.kind = Kind::kCorrelationId; break;
      default: fail(ErrorCode::kInvalidArgument, origin_, ": control_input '", name, "' is of no known kind");
    }
    check(kinds_.insert(control.kind).second, origin_, ": control_input '", name, "' is the second of its kind");
    if (control.kind == Kind::kCorrelationId) {
      read_correlation_id(message, control);
    } else {
      read_flag(message, control);
    }
    out_.controls.push_back(std::move(control));
  }

  void read_correlation_id(const Sequence::Control& message, SequenceBatchingConfig::Control& control) const {
    switch (message.data_type()) {
      case inference::TYPE_UINT64:
      case inference::TYPE_INT64:
      case inference::TYPE_UINT32:
      case inference::TYPE_INT32:
      case inference::TYPE_STRING: break;
      default:
        fail(ErrorCode::kInvalidArgument, origin_, ": control_input '", control.name,
             "': data_type must be TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 or TYPE_STRING");
    }
    check(message.int32_false_true().empty() && message.fp32_false_true().empty() && message.bool_false_true().empty(),
          origin_, ": control_input '", control.name, "': a correlation id has no two values");
    control.datatype = wire_datatype(message.data_type());
  }

  void read_flag(const Sequence::Control& message, SequenceBatchingConfig::Control& control) const {
    const auto take = [&](const auto& values, const char* datatype) {
      if (values.empty()) return;
      check(control.datatype.empty(), origin_, ": control_input '", control.name, "' has values of two types");
      check(values.size() == 2, origin_, ": control_input '", control.name, "' needs two values, got ", values.size());
      control.datatype = datatype;
      control.off = static_cast<double>(values[0]);
      control.on = static_cast<double>(values[1]);
    };
    take(message.int32_false_true(), "INT32");
    take(message.fp32_false_true(), "FP32");
    take(message.bool_false_true(), "BOOL");
    check(!control.datatype.empty(), origin_, ": control_input '", control.name,
          "' needs int32_false_true, fp32_false_true or bool_false_true");
  }

  std::vector<int64_t> dims_of(const google::protobuf::RepeatedField<int64_t>& dims, bool may_be_open,
                               const std::string& what) const {
    for (const int64_t dim : dims) {
      check(dim > 0 || dim == (may_be_open ? -1 : 0), origin_, ": ", what, ": dims must be positive or ",
            may_be_open ? -1 : 0, ", got ", dim);
    }
    return {dims.begin(), dims.end()};
  }

  void read_state(const Sequence::State& message) {
    SequenceBatchingConfig::State state;
    take_input_name(message.input_name(), "input_name of state");
    check(!message.output_name().empty(), origin_, ": state '", message.input_name(), "' needs an output_name");
    check(outputs_.insert(message.output_name()).second, origin_, ": output '", message.output_name(),
          "' is the state of two inputs");
    state.input_name = message.input_name();
    state.output_name = message.output_name();
    const std::string what = concat("state '", state.input_name, "'");
    state.datatype = wire_datatype(message.data_type());
    check(!state.datatype.empty(), origin_, ": ", what, " needs a data_type");
    state.dims = dims_of(message.dims(), /*may_be_open=*/true, what);
    check(message.initial_state_size() <= 1, origin_, ": ", what, " must have at most one initial_state, got ",
          message.initial_state_size());
    if (message.initial_state_size() == 1) read_initial_state(message.initial_state(0), what, state);
    out_.states.push_back(std::move(state));
  }

  void read_initial_state(const Sequence::InitialState& message, const std::string& what,
                          SequenceBatchingConfig::State& state) const {
    state.has_initial_state = true;
    const std::string datatype = wire_datatype(message.data_type());
    check(datatype == state.datatype, origin_, ": ", what, ": initial_state is ", datatype, ", the state ",
          state.datatype);
    state.initial_dims = dims_of(message.dims(), /*may_be_open=*/false, what + ": initial_state");
    bool fits = state.initial_dims.size() == state.dims.size();
    for (size_t i = 0; fits && i < state.dims.size(); ++i) {
      fits = state.dims[i] == -1 || state.dims[i] == state.initial_dims[i];
    }
    check(fits, origin_, ": ", what, ": dims of initial_state do not fit those of the state");
    switch (message.state_data_case()) {
      case Sequence::InitialState::kZeroData: break;
      case Sequence::InitialState::kDataFile:
        state.initial_is_zero = false;
        state.initial_file = message.data_file();
        check(!state.initial_file.empty(), origin_, ": ", what, ": data_file is empty");
        break;
      default: fail(ErrorCode::kInvalidArgument, origin_, ": ", what, ": initial_state needs zero_data or data_file");
    }
  }

  void read_direct(const Sequence::StrategyDirect& direct) {
    out_.direct_max_queue_delay_us = direct.max_queue_delay_microseconds();
    out_.direct_minimum_slot_utilization = direct.minimum_slot_utilization();
    check(direct.minimum_slot_utilization() >= 0 && direct.minimum_slot_utilization() <= 1, origin_,
          ".direct.minimum_slot_utilization must be 0 to 1, got ", direct.minimum_slot_utilization());
  }

  void read_oldest(const Sequence::StrategyOldest& oldest) {
    out_.strategy = SequenceBatchingConfig::Strategy::kOldest;
    const int32_t candidates = oldest.max_candidate_sequences();
    check(candidates >= 0 && candidates <= kMaxCandidates, origin_, ".oldest.max_candidate_sequences must be 0 to ",
          kMaxCandidates, ", got ", candidates);
    out_.oldest_max_candidate_sequences = candidates;
    for (const int32_t size : oldest.preferred_batch_size()) {
      check(size >= 1 && size <= config_.max_batch_size, origin_, ".oldest.preferred_batch_size must be 1 to ",
            config_.max_batch_size, ", got ", size);
      out_.oldest_preferred_batch_sizes.push_back(size);
    }
    out_.oldest_max_queue_delay_us = oldest.max_queue_delay_microseconds();
    out_.oldest_preserves_ordering = oldest.preserve_ordering();
  }

  const Sequence& message_;
  const std::string origin_;
  const ModelConfig& config_;
  SequenceBatchingConfig out_;
  std::set<std::string> names_, outputs_;
  std::set<Kind> kinds_;
};

// The data flow between steps is checked when the ensemble is loaded, because its models are known only then.
void read_ensemble(const inference::ModelEnsembling& message, const std::string& origin, ModelConfig& out) {
  check(out.platform == "ensemble" || (out.platform.empty() && out.backend == "ensemble"), origin,
        ": ensemble_scheduling needs platform: \"ensemble\"");
  out.platform = "ensemble";
  check(out.default_model_filename.empty(), origin, ": an ensemble has no default_model_filename");
  check(out.workers == 0, origin, ": an ensemble has no instance_group");
  check(message.step_size() > 0 && message.step_size() <= kMaxSteps, origin, ": ensemble_scheduling must have 1 to ",
        kMaxSteps, " steps, got ", message.step_size());
  for (const auto& step : message.step()) {
    check(!step.model_name().empty(), origin, ": ensemble_scheduling: a step has no model_name");
    const std::string what = concat(origin, ": ensemble_scheduling: step '", step.model_name(), "'");
    check(step.model_name() != out.name, what, " is the ensemble itself");
    check(step.model_version() == -1 || step.model_version() > 0, what, ": model_version must be positive or -1, got ",
          step.model_version());
    if (!step.model_namespace().empty()) {
      fail(ErrorCode::kUnimplemented, what, ": model_namespace is not supported");
    }
    check(!step.input_map().empty(), what, " has no input_map");
    check(!step.output_map().empty(), what, " has no output_map");
    EnsembleStepConfig config{
        .model = step.model_name(), .version = step.model_version(), .input_map = {}, .output_map = {}};
    config.input_map.insert(step.input_map().begin(), step.input_map().end());
    config.output_map.insert(step.output_map().begin(), step.output_map().end());
    for (const auto* map : {&config.input_map, &config.output_map}) {
      for (const auto& [inner, outer] : *map) {
        check(!inner.empty() && !outer.empty(), what, ": input_map and output_map must not have empty names");
      }
    }
    out.ensemble_steps.push_back(std::move(config));
  }
  out.ensemble_max_inflight = message.max_inflight_requests();
}

}  // namespace

void read_schedulers(const inference::ModelConfig& message, const std::string& origin, ModelConfig& out) {
  if (message.has_dynamic_batching()) {
    out.dynamic_batching = to_dynamic_batching(message.dynamic_batching(), out.max_batch_size, origin);
  }
  if (message.has_sequence_batching()) {
    out.sequence_batching = SequenceReader(message.sequence_batching(), origin, out).read();
  }
  if (message.has_ensemble_scheduling()) {
    read_ensemble(message.ensemble_scheduling(), origin, out);
  } else {
    check(out.platform != "ensemble" && out.backend != "ensemble", origin, ": an ensemble needs ensemble_scheduling");
  }
  check(!out.has_response_cache || !out.is_decoupled, origin,
        ": response_cache cannot be used with the decoupled transaction policy");
}

}  // namespace tensord::server
