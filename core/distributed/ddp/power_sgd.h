#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/distributed/ddp/reducer.h"
#include "core/ops/generator.h"
#include "core/ops/value.h"

namespace tensord::distributed {

struct PowerSgdOptions {
  int64_t rank = 1;                 // columns of each low-rank factor
  int64_t start_step = 1000;        // earlier passes are averaged uncompressed
  double min_compression_rate = 2;  // matrices that would shrink by less are not compressed
  bool has_error_feedback = true;   // the compression error of one pass is added to the next one
  bool has_warm_start = true;       // a pass starts from the columns of the previous one
  uint32_t seed = 0;                // of the initial columns
};

// PowerSGD (Vogels, Karimireddy, Jaggi 2019), computed as torch.distributed's powerSGD_hook does. A gradient of n rows
// and m columns is sent as two matrices of n and m rows and `rank` columns: P = M Q, summed over the ranks and
// orthonormalized, and Q = M^T P, averaged. P Q^T replaces M. Vectors, and matrices that would not shrink, are averaged
// uncompressed. A zero column stays zero (PyTorch divides by its norm and gets NaN).
//
// Use one object for one Reducer, whose buckets must keep their number and sizes from `start_step` on. Not thread-safe,
// except for the Reducer's own calls. The hooks must not outlive the object.
class PowerSgd {
 public:
  // Throws Error{kInvalidArgument} for options out of range. start_step must be 2 or more with error feedback or warm
  // start, because buckets are rebuilt after the first pass.
  explicit PowerSgd(PowerSgdOptions options);

  CommHook hook();
  int64_t step() const { return step_; }

  // Returns all state that later passes depend on: the step, the state of the seed generator, and for each bucket the
  // columns (equal on all ranks) and this rank's error. Call it between passes.
  ops::Value state_dict() const;
  // Pass with_error = false if the error was saved by another rank, or with another number of ranks. Throws Error if
  // `state` is malformed.
  void load_state_dict(const ops::Value& state, bool with_error);

 private:
  struct Pass;
  struct Memory {
    Tensor error;                 // flat, like the bucket; undefined at first
    std::vector<Tensor> columns;  // Q of each compressed matrix, [m, rank]
  };
  std::function<void()> start(ProcessGroup& group, const GradBucket& bucket);
  void begin_columns(Memory& memory, const Pass& pass);
  void finish(ProcessGroup& group, Pass& pass);

  const PowerSgdOptions options_;
  int64_t step_ = 0;
  ops::Generator seeds_;
  std::map<size_t, Memory> memories_;  // by bucket
};

}  // namespace tensord::distributed
