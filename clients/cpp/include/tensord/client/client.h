#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "tensord/client/error.h"
#include "tensord/client/options.h"
#include "tensord/client/request.h"
#include "tensord/client/tensor.h"

namespace tensord::client {

struct ServerMetadata {
  std::string name, version;
  std::vector<std::string> extensions;
};

struct TensorMetadata {
  std::string name;
  std::string data_type;       // empty: any
  std::vector<int64_t> shape;  // -1: any size
};

struct ModelMetadata {
  std::string name;
  std::vector<std::string> versions;
  std::string platform;
  std::vector<TensorMetadata> inputs, outputs;
};

struct ModelState {
  std::string name, version, state, reason;  // a model that was never loaded has no version, state and reason
};

struct ModelStatistics {
  struct Duration {
    uint64_t count = 0, ns = 0;
  };
  std::string name, version;
  uint64_t last_inference_ms = 0;  // Unix time; 0: none yet
  uint64_t inference_count = 0;    // rows, over all batches
  uint64_t execution_count = 0;    // batches
  Duration success, fail, queue, compute_input, compute_infer, compute_output, cache_hit, cache_miss;
};

// Options of a load; without them, the repository's files are loaded as they are.
struct LoadOptions {
  std::string config = {};                             // JSON; replaces config.pbtxt
  std::map<std::string, std::string> files = {};       // path in the model's folder ("1/model.pt") → its bytes
  std::map<std::string, std::string> parameters = {};  // for example version_labels
};

struct SharedMemoryStatus {
  std::string name, key;
  uint64_t offset = 0, size_bytes = 0;
};

using Settings = std::map<std::string, std::vector<std::string>>;

class Stream;
class TrainingClient;

// A connection to a server that speaks KServe v2 with Triton's extensions: tensord or Triton. Thread-safe; share one
// client, because all calls use the same connection. Calls throw Error. The constructor does not connect, the first
// call does.
class Client {
 public:
  // "localhost:8001", "unix:/run/tensord.sock", "dns:///tensord.default.svc:8001".
  explicit Client(const std::string& address, ClientOptions options = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // -- Inference --
  Result infer(const Request& request, const CallOptions& options = {});
  // Inputs by position.
  Result infer(const std::string& model, std::vector<Tensor> inputs, const CallOptions& options = {});
  std::future<Result> infer_async(Request request, const CallOptions& options = {});
  // The callback gets a result or an error, on a gRPC thread. It must be quick and must not throw.
  using OnResult = std::function<void(std::exception_ptr error, Result result)>;
  void infer_async(Request request, OnResult on_result, const CallOptions& options = {});
  // Concurrent requests and results over one call; needed for decoupled models, useful for sequences.
  Stream open_stream(const CallOptions& options = {});

  // -- Health; false if the server cannot be reached --
  bool is_live(const CallOptions& options = {});
  bool is_ready(const CallOptions& options = {});
  bool is_model_ready(const std::string& model, const std::string& version = {}, const CallOptions& options = {});
  // Throws DeadlineExceededError.
  void wait_until_ready(std::chrono::milliseconds timeout);

  // -- Metadata --
  ServerMetadata server_metadata(const CallOptions& options = {});
  ModelMetadata model_metadata(const std::string& model, const std::string& version = {},
                               const CallOptions& options = {});
  std::string model_config_json(const std::string& model, const std::string& version = {},
                                const CallOptions& options = {});
  // Statistics of one model, or of all models.
  std::vector<ModelStatistics> statistics(const std::string& model = {}, const std::string& version = {},
                                          const CallOptions& options = {});

  // -- Models --
  std::vector<ModelState> models(bool only_ready = false, const CallOptions& options = {});
  void load_model(const std::string& model, const LoadOptions& load = {}, const CallOptions& options = {});
  void unload_model(const std::string& model, bool with_dependents = false, const CallOptions& options = {});

  // -- Settings: sets the given ones and returns all --
  Settings trace_settings(const Settings& changes = {}, const std::string& model = {}, const CallOptions& options = {});
  // Values are strings: "true", "2".
  Settings log_settings(const Settings& changes = {}, const CallOptions& options = {});

  // -- Shared memory, low-level; SharedMemory (shared_memory.h) does all of this --
  void register_shared_memory(const std::string& name, const std::string& key, size_t size_bytes, size_t offset = 0,
                              const CallOptions& options = {});
  void unregister_shared_memory(const std::string& name, const CallOptions& options = {});  // empty: all
  std::vector<SharedMemoryStatus> shared_memory(const CallOptions& options = {});

  // -- Training jobs of tensord (training.h) --
  TrainingClient training();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tensord::client
