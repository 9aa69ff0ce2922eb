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
  int64_t rank = 1;                 // columns that stand for a matrix
  int64_t start_step = 1000;        // passes before it are averaged as they are
  double min_compression_rate = 2;  // matrices that are not made so much smaller stay as they are
  bool has_error_feedback = true;   // what is lost in one pass is added to the next
  bool has_warm_start = true;       // a pass begins with the columns of the one before
  uint32_t seed = 0;                // of the first columns
};

// PowerSGD (Vogels, Karimireddy, Jaggi 2019) as torch.distributed's powerSGD_hook computes it. A gradient of n rows and
// m columns is sent as two matrices of n and m rows and `rank` columns: P = M Q summed over the ranks and made
// orthonormal, Q = M^T P averaged; P Q^T takes M's place. Vectors, and matrices that would not shrink, are averaged as
// they are. A column of zeros stays one (PyTorch divides by its norm and gets NaN).
//
// One object for one Reducer, whose buckets keep their number and sizes from `start_step` on. Not thread-safe but for
// what the Reducer does; hooks must not outlive it.
class PowerSgd {
 public:
  // Throws Error{kInvalidArgument} for options out of range: start_step of 0 and 1 with feedback or warm start, since
  // buckets are made anew after the first pass.
  explicit PowerSgd(PowerSgdOptions options);

  CommHook hook();
  int64_t step() const { return step_; }

  // All that later passes hang on: the step, the state of the seeds, and by bucket the columns, which all ranks have
  // alike, and the error of this rank. Between passes.
  ops::Value state_dict() const;
  // with_error: false where it was another rank's, or that of another number of ranks. Throws Error for what is no
  // state.
  void load_state_dict(const ops::Value& state, bool with_error);

 private:
  struct Pass;
  struct Memory {
    Tensor error;                 // as the bucket; undefined at first
    std::vector<Tensor> columns;  // Q of each matrix that is compressed, [m, rank]
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
