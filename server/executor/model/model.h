#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/jit/runtime/inputs/known_inputs.h"
#include "core/tensor/tensor.h"
#include "server/executor/model/datatype.h"
#include "server/executor/model/encoded_input.h"
#include "server/metrics/metrics.h"

namespace tensord::server {

// A tensor's bytes, row-major, in pieces of a message that `owner` keeps alive.
struct ScatteredBytes {
  std::vector<std::span<const uint8_t>> pieces;
  std::shared_ptr<const void> owner;
};

// One input or output of a request. BYTES elements are in `strings`, all others in `tensor`.
struct InferTensor {
  std::string name;
  DataType datatype = DataType::kFp32;
  Dims shape;
  Tensor tensor;
  std::vector<std::string> strings;
  bool is_shared = false;  // the memory is a client's shared memory, which may change at any time
  // True if only the sender of the request reads this memory and expects the model's writes in it: a sequence's state,
  // or a copy made for this run. If false, a model that writes to the input gets a copy.
  bool is_own = false;
  // Replaces `tensor` in requests to models that gathers_inputs(): the bytes are copied once, straight into the batch.
  // Its size fits the shape and datatype. Never BOOL, whose values must be checked.
  std::shared_ptr<const ScatteredBytes> scattered = nullptr;
};

// An input or output as far as it is known without running the model.
struct TensorSpec {
  std::string name;
  std::vector<std::string> aliases;  // other names that requests may use
  std::optional<DataType> datatype;  // none: any
  std::optional<Dims> shape;         // with the batch dimension; -1: any size; none: any rank
  std::optional<Dims> reshape;       // the shape that the model gets instead of `shape`
  bool is_optional = false;
  bool takes_bytes = false;  // the model takes strings
  bool is_written = false;   // inputs only: a run writes to it if is_own
  // What the graph makes certain where `datatype` and `shape` say nothing; of outputs, if the inputs are as metadata
  // says. For metadata; requests and results are not checked against it.
  jit::KnownInput known = {};
  // Inputs of encoded files only: what the model says of a file before it decodes it.
  std::shared_ptr<const EncodedInput> encoded = nullptr;

  bool answers_to(const std::string& wanted) const;
};

struct Signature {
  std::string platform;   // "pytorch_libtorch", as Triton names it
  std::string file_name;  // name of the model's file, without its folder; may be empty
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  bool outputs_are_complete = true;  // false: a run may return more outputs than these
  int64_t max_batch_size = 0;        // 0: no batch dimension
  // The work depends only on the input sizes: there are no loops and no unknown calls.
  bool has_bounded_work = false;
  bool keeps_state = false;    // a run may change the results of later runs
  bool writes_inputs = false;  // a run writes to inputs that are is_own
  // An operator that makes the rows of a batch depend on each other; empty: none. If set, requests do not share a
  // batch.
  std::string mixing_operator;
  // Where the model runs: the device of each instance; without any, as many as the server wants, all on `device`.
  Device device = {};
  std::vector<Device> instances = {};

  // Whether some instance has its tensors elsewhere. Requests and answers are in the host's memory, but for clients'
  // memory on a GPU (ExecutionStrategy::takes_device_tensors).
  bool is_on_device() const;
};

// The outputs of a run and its cost beyond the computation.
struct RunResult {
  std::vector<InferTensor> outputs;
  // Decoupled models set this instead of `outputs`: the outputs of each response.
  std::vector<std::vector<InferTensor>> responses = {};
  uint64_t copied_bytes = 0;  // payload that was copied because the model writes to it
};

// Memory where an output should be placed.
struct OutputPlace {
  std::string name;
  Storage memory;  // writable; may change at any time; of the host or of a device
};

// Options of one run. Everything is owned by the caller and must outlive the run.
struct RunOptions {
  const std::function<bool()>& is_cancelled;
  // Where outputs should be placed to save a copy. The model may ignore it; the caller checks.
  std::span<const OutputPlace> places = {};
  // Names of outputs that stay on the device where they are made. All others come to the host.
  std::span<const std::string> resident = {};
  bool plans_in_background = false;  // a new shape is interpreted while its plan is built
};

// A worker's state between runs. Not thread-safe.
class ModelSession {
 public:
  virtual ~ModelSession() = default;
  // `inputs` has one entry per input of the signature; null: an optional input is left out. Tensors may be in read-only
  // memory. Throws Error.
  virtual RunResult run(std::span<const InferTensor* const> inputs, const RunOptions& options) = 0;
};

// What `precision: auto` has chosen for a model.
struct PrecisionChoice {
  std::string name;    // f32, bf16 or int8; empty: the precision was configured
  std::string reason;  // for logs and people
};

// A loaded version of a model. Immutable and thread-safe; its sessions run it.
class Model {
 public:
  virtual ~Model() = default;
  virtual const Signature& signature() const = 0;
  // Problems that do not keep the model from being served.
  virtual std::vector<std::string> warnings() const { return {}; }
  virtual std::unique_ptr<ModelSession> make_session() const = 0;
  // On the device of an instance of signature().instances.
  virtual std::unique_ptr<ModelSession> make_session_of(size_t /*instance*/) const { return make_session(); }
  // Releases memory that only the first run with a shape needs. Safe while others run, unless the model keeps state.
  virtual void release_unused_memory() const {}
  virtual PlanCounts plan_counts() const { return {}; }

  const PrecisionChoice& precision() const { return precision_; }
  // Where the model is loaded, before others have it.
  void set_precision(PrecisionChoice precision) { precision_ = std::move(precision); }

 private:
  PrecisionChoice precision_;
};

// An input's header, before its data is decoded.
struct InputHeader {
  const std::string& name;
  const std::string& datatype;
  const Dims& shape;
};

// The index in signature.inputs of each header. Throws Error{kInvalidArgument} for unknown, duplicate or missing names,
// and for datatypes and shapes that the model does not take.
std::vector<size_t> match_inputs(const Signature& signature, const std::string& model,
                                 std::span<const InputHeader> headers);

// Throws Error{kInvalidArgument} for duplicate names, and for unknown ones if all outputs are known before a run.
void check_requested_outputs(const Signature& signature, const std::string& model, std::span<const std::string> names);

// Keeps the requested outputs, in the requested order. Empty: all. Throws Error{kInvalidArgument} if one is missing.
std::vector<InferTensor> select_outputs(std::vector<InferTensor> outputs, const Signature& signature,
                                        const std::string& model, std::span<const std::string> names);

}  // namespace tensord::server
