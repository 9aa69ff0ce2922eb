#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/config/engine_options.h"

namespace tensord::server {

// What happens to requests that wait: dynamic_batching's default_queue_policy and priority_queue_policy.
struct QueuePolicyConfig {
  enum class TimeoutAction { kReject, kDelay };  // kDelay: runs after all that are in time
  TimeoutAction timeout_action = TimeoutAction::kReject;
  uint64_t default_timeout_us = 0;  // of waiting; 0: none
  bool allows_timeout_override = false;
  uint32_t max_queue_size = 0;  // 0: the server's default
};

struct DynamicBatchingConfig {
  std::vector<int64_t> preferred_batch_sizes;
  uint64_t max_queue_delay_us = 0;
  bool preserves_ordering = false;
  uint64_t priority_levels = 0;  // 0: priorities are not looked at
  uint64_t default_priority_level = 0;
  QueuePolicyConfig default_queue_policy;
  std::map<uint64_t, QueuePolicyConfig> priority_queue_policies;  // by level
};

struct SequenceBatchingConfig {
  enum class Strategy { kDirect, kOldest };
  enum class ControlKind { kStart, kReady, kEnd, kCorrelationId };
  // An input that tensord fills for every slot of a batch.
  struct Control {
    std::string name;
    ControlKind kind = ControlKind::kStart;
    std::string datatype;  // of kCorrelationId: as on the wire; of others what `off` and `on` are: INT32, FP32, BOOL
    double off = 0, on = 1;
  };
  // A tensor that one request of a sequence gives to the next.
  struct State {
    std::string input_name, output_name;
    std::string datatype;
    std::vector<int64_t> dims;  // -1: any size
    bool has_initial_state = false;
    bool initial_is_zero = true;
    std::string initial_file;  // in the model's folder `initial_state`; its path once the repository was read
    std::vector<int64_t> initial_dims;
  };
  Strategy strategy = Strategy::kDirect;
  uint64_t max_sequence_idle_us = 1000000;
  std::vector<Control> controls;
  std::vector<State> states;
  bool is_iterative = false;  // a request runs step by step until the model says it is done: generation
  // kDirect
  uint64_t direct_max_queue_delay_us = 0;
  float direct_minimum_slot_utilization = 0;
  // kOldest
  int32_t oldest_max_candidate_sequences = 0;
  std::vector<int64_t> oldest_preferred_batch_sizes;
  uint64_t oldest_max_queue_delay_us = 0;
  bool oldest_preserves_ordering = false;
};

struct EnsembleStepConfig {
  std::string model;
  int64_t version = -1;                           // -1: the one that requests get
  std::map<std::string, std::string> input_map;   // the model's input → the ensemble's tensor
  std::map<std::string, std::string> output_map;  // the model's output → the ensemble's tensor
};

// Resources that a run of the model holds while it runs.
struct RateLimiterConfig {
  struct Resource {
    std::string name;
    bool is_global = false;
    uint32_t count = 0;
  };
  std::vector<Resource> resources;
  uint32_t priority = 0;  // 0 and 1 are highest; 2 gets half as many runs as 1, …
};

// What a model's config.pbtxt says, free of protobuf. Everything is optional.
struct ModelConfig {
  struct TensorConfig {
    std::string name;
    std::string datatype;       // as on the wire, "FP32"; empty when not given
    std::vector<int64_t> dims;  // -1: any size; without the batch dimension
    bool has_dims = false;
    std::vector<int64_t> reshape;  // shape the model is given instead of dims
    bool has_reshape = false;
    bool is_optional = false;
    bool allows_ragged_batch = false;  // requests of other shapes may share a batch; see `ragged`
    std::string label_filename;        // of an output, for classification: one label a line, in the model's folder
  };
  // Requests that are run before the model is ready.
  struct Warmup {
    enum class Source { kZeros, kRandom, kFile };
    struct Input {
      std::string datatype;
      std::vector<int64_t> dims;  // without the batch dimension
      Source source = Source::kZeros;
      std::string file;  // of kFile: in the model's folder `warmup`; its path once the repository was read
    };
    std::string name;
    int64_t batch_size = 1;
    uint32_t count = 1;
    std::map<std::string, Input> inputs;
    // Requests captured by --capture, in the folder `warmup`; instead of inputs. Its path once the repository was read.
    // Parameter "warmup_requests": "FILE" or "FILE,FILE".
    std::string recorded_file;
  };
  enum class VersionPolicy { kLatest, kAll, kSpecific };
  // How inputs that allow ragged batches are brought to one shape: padded at their ends to the largest of the batch,
  // or to the next of `buckets`. Parameters "ragged_padding" (value) and "ragged_buckets" ("64,128,256").
  struct Ragged {
    double padding_value = 0;
    std::vector<int64_t> buckets;
  };

  std::string name;
  std::string platform;
  std::string backend;
  std::string default_model_filename;
  VersionPolicy version_policy = VersionPolicy::kLatest;
  uint32_t latest_versions = 1;            // of kLatest
  std::vector<int64_t> specific_versions;  // of kSpecific
  int64_t max_batch_size = 0;              // 0: shapes are complete, no batch dimension
  std::vector<TensorConfig> inputs;
  std::vector<TensorConfig> outputs;
  std::vector<Warmup> warmups;
  EngineOverrides engine;
  int threads = 0;                    // per worker, INTRA_OP_THREAD_COUNT; 0: the server's default
  int workers = 0;                    // sum of instance_group counts; 0: the server's default
  std::optional<uint64_t> seed = {};  // of the version's random numbers, parameter "seed"; none: from the system
  RateLimiterConfig rate_limiter;
  // At most one of the three; none: first come, first served, one at a time.
  std::optional<DynamicBatchingConfig> dynamic_batching;
  std::optional<SequenceBatchingConfig> sequence_batching;
  std::vector<EnsembleStepConfig> ensemble_steps;  // of platform "ensemble"
  uint32_t ensemble_max_inflight = 0;              // runs of one step at a time for one request; 0: any number
  Ragged ragged;
  bool is_decoupled = false;
  bool has_response_cache = false;
  std::map<std::string, std::string> version_labels;  // "stable" → "2"; parameter "version_labels": "stable=2,canary=3"
  std::map<std::string, std::string> metric_tags;
  std::map<std::string, std::string> parameters;
  std::string source;  // the whole inference.ModelConfig as it was read, serialized: what ModelConfig shows

  bool is_ensemble() const { return platform == "ensemble"; }
};

}  // namespace tensord::server
