#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/config/engine_options.h"

namespace tensord::server {

// What tensord uses of a model's config.pbtxt, free of protobuf. Everything is optional.
struct ModelConfig {
  struct TensorConfig {
    std::string name;
    std::string datatype;       // as on the wire, "FP32"; empty when not given
    std::vector<int64_t> dims;  // -1: any size; without the batch dimension
    bool has_dims = false;
    std::vector<int64_t> reshape;  // shape the model is given instead of dims
    bool has_reshape = false;
    bool is_optional = false;
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
  };
  enum class VersionPolicy { kLatest, kAll, kSpecific };

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
  std::vector<int64_t> preferred_batch_sizes;
  EngineOverrides engine;
  int threads = 0;                  // per worker, INTRA_OP_THREAD_COUNT; 0: the server's default
  int workers = 0;                  // sum of instance_group counts; 0: the server's default
  uint32_t max_queue_size = 0;      // 0: the server's default
  uint64_t default_timeout_us = 0;  // of waiting in the queue; 0: none
  bool is_decoupled = false;
  std::map<std::string, std::string> parameters;
};

}  // namespace tensord::server
