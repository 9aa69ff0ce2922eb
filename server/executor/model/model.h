#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "server/executor/model/datatype.h"
#include "server/metrics/metrics.h"

namespace tensord::server {

// The bytes of a tensor, row-major, in pieces of a message that `owner` keeps alive.
struct ScatteredBytes {
  std::vector<std::span<const uint8_t>> pieces;
  std::shared_ptr<const void> owner;
};

// One input or output of a request. BYTES elements are in `strings`, others in `tensor`.
struct InferTensor {
  std::string name;
  DataType datatype = DataType::kFp32;
  Dims shape;
  Tensor tensor;
  std::vector<std::string> strings;
  bool is_shared = false;  // the tensor lies in shared memory of a client, which may write to it at any time
  // Nobody but who sends the request reads the tensor's memory, and expects what a model writes there: the state of a
  // sequence, a copy made for this run. Where false, a model that writes to its input writes to a copy.
  bool is_own = false;
  // Instead of `tensor`, only in requests to a model that gathers_inputs(): copied once, to where the batch lies. As
  // many bytes as the shape and datatype say; not of BOOL, whose values must be 0 and 1.
  std::shared_ptr<const ScatteredBytes> scattered = nullptr;
};

// What is known of an input or output before any request.
struct TensorSpec {
  std::string name;
  std::vector<std::string> aliases;  // other names it answers to
  std::optional<DataType> datatype;  // none: any
  std::optional<Dims> shape;         // -1: any size; none: any rank. With the batch dimension
  std::optional<Dims> reshape;       // what the model is given instead of `shape`
  bool is_optional = false;
  bool takes_bytes = false;  // the model wants strings there
  bool is_written = false;   // of an input: a run may write to it, where it is its own

  bool answers_to(const std::string& wanted) const;
};

struct Signature {
  std::string platform;   // "pytorch_libtorch", as Triton names it
  std::string file_name;  // of the file it was loaded from, without its folder; empty: none
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  bool outputs_are_complete = true;  // false: a run may return more than is listed
  int64_t max_batch_size = 0;        // 0: no batch dimension
  // The work depends on the sizes of the inputs alone: no loops, no calls that are not known.
  bool has_bounded_work = false;
  bool keeps_state = false;    // a run may change what later runs see
  bool writes_inputs = false;  // a run may write to its inputs, where they are its own
  // The operator by which the rows of a run change each other's results; empty: none. Requests share no run then.
  std::string mixing_operator;
};

// What a run gives back, and what it cost beyond the computation.
struct RunResult {
  std::vector<InferTensor> outputs;
  // Of a decoupled model, instead of `outputs`: those of each response.
  std::vector<std::vector<InferTensor>> responses = {};
  uint64_t copied_bytes = 0;  // payload copied because the model may write to it
};

// Memory that an output should lie in.
struct OutputPlace {
  std::string name;
  Storage memory;  // writable; others may write to it at any time
};

// What one run is told beside its inputs. All of it is the caller's, and outlives the run.
struct RunOptions {
  const std::function<bool()>& is_cancelled;
  // For outputs, so that they need not be copied there. A model may put them elsewhere; the caller looks where they
  // are.
  std::span<const OutputPlace> places = {};
  bool plans_in_background = false;  // a new shape does not wait until a plan is built for it
};

// What one worker keeps between runs. Not thread-safe.
class ModelSession {
 public:
  virtual ~ModelSession() = default;
  // `inputs` has one entry per input of the signature, null where an optional one is left out.
  // Tensors may lie in memory that must not be written. Throws Error.
  virtual RunResult run(std::span<const InferTensor* const> inputs, const RunOptions& options) = 0;
};

// One loaded version of a model. Immutable and thread-safe; sessions do the work.
class Model {
 public:
  virtual ~Model() = default;
  virtual const Signature& signature() const = 0;
  // What whoever serves it should know, though it can be served.
  virtual std::vector<std::string> warnings() const { return {}; }
  virtual std::unique_ptr<ModelSession> make_session() const = 0;
  // Gives back memory that only the first run with a shape needed. Others may run meanwhile, unless
  // the model keeps state.
  virtual void release_unused_memory() const {}
  virtual PlanCounts plan_counts() const { return {}; }
};

// An input as the request describes it, before its data is looked at.
struct InputHeader {
  const std::string& name;
  const std::string& datatype;
  const Dims& shape;
};

// Index into signature.inputs for each header. Throws Error{kInvalidArgument} on unknown,
// doubled or missing names, and on datatypes and shapes that the model does not take.
std::vector<size_t> match_inputs(const Signature& signature, const std::string& model,
                                 std::span<const InputHeader> headers);

// Throws Error{kInvalidArgument} on names that are doubled or, where the outputs are known
// before a run, not there.
void check_requested_outputs(const Signature& signature, const std::string& model, std::span<const std::string> names);

// Keeps only the requested outputs, in the requested order. Empty: all.
// Throws Error{kInvalidArgument} when one is not there.
std::vector<InferTensor> select_outputs(std::vector<InferTensor> outputs, const Signature& signature,
                                        const std::string& model, std::span<const std::string> names);

}  // namespace tensord::server
