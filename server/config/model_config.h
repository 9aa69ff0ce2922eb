#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/config/engine_options.h"

namespace tensord::server {

// How queued requests time out: dynamic_batching's default_queue_policy and priority_queue_policy.
struct QueuePolicyConfig {
  enum class TimeoutAction { kReject, kDelay };  // kDelay: run after all requests that are in time
  TimeoutAction timeout_action = TimeoutAction::kReject;
  uint64_t default_timeout_us = 0;  // of queueing; 0: none
  bool allows_timeout_override = false;
  uint32_t max_queue_size = 0;  // 0: the server's default
};

struct DynamicBatchingConfig {
  std::vector<int64_t> preferred_batch_sizes;
  uint64_t max_queue_delay_us = 0;
  bool preserves_ordering = false;
  uint64_t priority_levels = 0;  // 0: priorities are ignored
  uint64_t default_priority_level = 0;
  QueuePolicyConfig default_queue_policy;
  std::map<uint64_t, QueuePolicyConfig> priority_queue_policies;  // keyed by level
};

struct SequenceBatchingConfig {
  enum class Strategy { kDirect, kOldest };
  enum class ControlKind { kStart, kReady, kEnd, kCorrelationId };
  // A control input of a sequence model, which tensord fills for every slot of a batch.
  struct Control {
    std::string name;
    ControlKind kind = ControlKind::kStart;
    std::string datatype;  // kCorrelationId: of the input; others: of `off` and `on` (INT32, FP32, BOOL)
    double off = 0, on = 1;
  };
  // A state tensor: an output of one request becomes an input of the next request in the sequence.
  struct State {
    std::string input_name, output_name;
    std::string datatype;
    std::vector<int64_t> dims;  // -1: any size
    bool has_initial_state = false;
    bool initial_is_zero = true;
    std::string initial_file;  // in the model's folder `initial_state`; a full path once the repository was scanned
    std::vector<int64_t> initial_dims;
  };
  Strategy strategy = Strategy::kDirect;
  uint64_t max_sequence_idle_us = 1000000;
  std::vector<Control> controls;
  std::vector<State> states;
  bool is_iterative = false;  // a request runs step by step until the model finishes it: generation
  // For kDirect.
  uint64_t direct_max_queue_delay_us = 0;
  float direct_minimum_slot_utilization = 0;
  // For kOldest.
  int32_t oldest_max_candidate_sequences = 0;
  std::vector<int64_t> oldest_preferred_batch_sizes;
  uint64_t oldest_max_queue_delay_us = 0;
  bool oldest_preserves_ordering = false;
};

struct EnsembleStepConfig {
  std::string model;
  int64_t version = -1;                           // -1: the version that a request without a version gets
  std::map<std::string, std::string> input_map;   // the model's input → the ensemble's tensor
  std::map<std::string, std::string> output_map;  // the model's output → the ensemble's tensor
};

// Resources that the model holds during a run.
struct RateLimiterConfig {
  struct Resource {
    std::string name;
    bool is_global = false;
    uint32_t count = 0;
  };
  std::vector<Resource> resources;
  uint32_t priority = 0;  // 0 and 1 are the highest; 2 gets half as many runs as 1, and so on
};

// Instances of a model that run in one kind of place.
struct InstanceGroupConfig {
  enum class Kind { kAuto, kGpu, kCpu, kModel };
  std::string name;
  Kind kind = Kind::kAuto;
  int count = 1;            // on each of the devices
  std::vector<int> gpus;    // empty: all
  std::string host_policy;  // of --host-policy; empty: "cpu" or "gpu_N"
};

// The contents of a model's config.pbtxt, without protobuf types. Everything is optional.
struct ModelConfig {
  struct TensorConfig {
    std::string name;
    std::string datatype;       // as on the wire, "FP32"; empty when not given
    std::vector<int64_t> dims;  // -1: any size; without the batch dimension
    bool has_dims = false;
    std::vector<int64_t> reshape;  // shape that the model gets instead of dims
    bool has_reshape = false;
    bool is_optional = false;
    bool allows_ragged_batch = false;  // requests with different shapes may share a batch; see `ragged`
    std::string label_filename;        // labels of an output: a file in the model's folder
  };
  // Requests that run before the model becomes ready.
  struct Warmup {
    enum class Source { kZeros, kRandom, kFile };
    struct Input {
      std::string datatype;
      std::vector<int64_t> dims;  // without the batch dimension
      Source source = Source::kZeros;
      std::string file;  // kFile: in the model's folder `warmup`; a full path once the repository was scanned
    };
    std::string name;
    int64_t batch_size = 1;
    uint32_t count = 1;
    std::map<std::string, Input> inputs;
    // Requests captured by --capture, used instead of inputs: a file in the folder `warmup`, a full path once the
    // repository was scanned. Set by parameter "warmup_requests": "FILE" or "FILE,FILE".
    std::string recorded_file;
  };
  enum class VersionPolicy { kLatest, kAll, kSpecific };
  // How ragged inputs get one shape: they are padded at the end to the largest in the batch, or to the next of
  // `buckets`. Set by parameters "ragged_padding" (the padding value) and "ragged_buckets" ("64,128,256").
  struct Ragged {
    double padding_value = 0;
    std::vector<int64_t> buckets;
  };

  std::string name;
  std::string platform;
  std::string backend;
  std::string default_model_filename;
  VersionPolicy version_policy = VersionPolicy::kLatest;
  uint32_t latest_versions = 1;            // for kLatest
  std::vector<int64_t> specific_versions;  // for kSpecific
  int64_t max_batch_size = 0;              // 0: shapes include every dimension, and there is no batch dimension
  std::vector<TensorConfig> inputs;
  std::vector<TensorConfig> outputs;
  std::vector<Warmup> warmups;
  EngineOverrides engine;
  int threads = 0;                                   // per worker (INTRA_OP_THREAD_COUNT); 0: the server's default
  int workers = 0;                                   // sum of the instance_group counts; 0: the server's default
  std::vector<InstanceGroupConfig> instance_groups;  // without the passive ones
  std::optional<uint64_t> seed = {};  // of the version's random numbers, parameter "seed"; none: from the system
  RateLimiterConfig rate_limiter;
  // At most one is set. With none, requests run one at a time in order of arrival.
  std::optional<DynamicBatchingConfig> dynamic_batching;
  std::optional<SequenceBatchingConfig> sequence_batching;
  std::vector<EnsembleStepConfig> ensemble_steps;  // of platform "ensemble"
  uint32_t ensemble_max_inflight = 0;              // concurrent runs of one step for one request; 0: no limit
  Ragged ragged;
  bool is_decoupled = false;
  bool has_response_cache = false;
  std::map<std::string, std::string> version_labels;  // "stable" → "2"; parameter "version_labels": "stable=2,canary=3"
  std::map<std::string, std::string> metric_tags;
  std::map<std::string, std::string> parameters;
  std::string source;  // the complete inference.ModelConfig, serialized, as the ModelConfig call returns it

  bool is_ensemble() const { return platform == "ensemble"; }
};

}  // namespace tensord::server
