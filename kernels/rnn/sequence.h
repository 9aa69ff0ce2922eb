#pragma once

#include <memory>
#include <vector>

#include "core/ops/prepared.h"
#include "core/tensor/tensor.h"
#include "kernels/rnn/kernels.h"

// Recurrent layers over sequences: what rnn_tanh, rnn_relu, gru and lstm do, prepared for shapes.
namespace tensord::kernels {

// The parameters of one layer and direction; the biases and the LSTM's projection may be undefined.
struct RnnParameters {
  Tensor input, recurrent, input_bias, recurrent_bias, projection;
};

// The parameters packed for the loops of kernels.h. Immutable.
template <class T>
struct RnnWeights {
  // All tensors of dtype T on the CPU, shapes checked.
  RnnWeights(RnnKind kind, const RnnParameters& parameters);

  int64_t inputs, hidden, state;                // state: what is passed on: hidden, or the projection's size
  int64_t panels = 0, projection_panels = 0;    // of hidden units, and of projected ones
  int64_t padded_hidden = 0, padded_state = 0;  // in whole panels
  const T *input = nullptr, *bias = nullptr, *recurrent = nullptr;
  const T* new_bias = nullptr;    // GRU: that of the recurrent part of the new gate
  const T* projection = nullptr;  // or null

 private:
  Tensor memory_;
};

struct RnnShape {
  RnnKind kind = RnnKind::kLstm;
  int64_t layers = 1, directions = 1;
  int64_t steps = 0, batch = 0, rows = 0;  // rows: of all steps
  bool is_packed = false;                  // steps of different sizes, one after the other
  int64_t input_step_stride = 0, input_row_stride = 0;
  int64_t output_step_stride = 0, output_row_stride = 0;
};

// The memory of one run. States are [layers * directions, batch, size], row-major; c0 and cn are null
// but for the LSTM.
template <class T>
struct RnnMemory {
  const T *x = nullptr, *h0 = nullptr, *c0 = nullptr;
  const int64_t* sizes = nullptr;  // of packed data: the rows of each step; checked by run
  T *out = nullptr, *hn = nullptr, *cn = nullptr;
  void* scratch = nullptr;
};

// Immutable; any number of threads may run it at once. Results do not depend on `threads`, nor on
// which other rows are in the batch.
template <class T>
class RnnSequence {
 public:
  // weights: one per layer and direction, in that order.
  RnnSequence(const RnnShape& shape, std::vector<std::shared_ptr<const RnnWeights<T>>> weights, int threads);

  size_t scratch_bytes() const { return scratch_bytes_; }
  ops::Cost cost() const;
  void run(const RnnMemory<T>& memory) const;

 private:
  struct Team;
  struct Share;
  struct State;

  void cut(int threads);
  void lay_out_scratch();
  RnnSteps read_sizes(const RnnMemory<T>& memory) const;
  RnnRows<const T> layer_input(const RnnMemory<T>& memory, int64_t layer) const;
  RnnRows<T> layer_output(const RnnMemory<T>& memory, int64_t layer) const;
  State state_of(const RnnMemory<T>& memory, int64_t direction) const;
  void take_part(const RnnMemory<T>& memory, const RnnSteps& steps, Team& team, int64_t begin, int64_t end) const;
  void run_direction(const RnnMemory<T>& memory, const RnnSteps& steps, int64_t layer, int64_t direction,
                     const Share& share) const;
  void run_step(const RnnSteps& steps, int64_t step, const RnnWeights<T>& weights, const State& state, const T* gates,
                const RnnRows<T>& out, int64_t turn, const Share& share) const;
  void load_state(const RnnMemory<T>& memory, const State& state, int64_t index, const RnnPart& part) const;
  void store_state(const RnnMemory<T>& memory, const RnnSteps& steps, const State& state, int64_t index,
                   const RnnPart& part) const;

  RnnShape shape_;
  std::vector<std::shared_ptr<const RnnWeights<T>>> weights_;
  // How the work is cut: by rows, which never meet; or by direction, and each in `members` by panels.
  bool by_rows_ = false;
  int64_t groups_ = 1, members_ = 1;
  int64_t chunk_steps_ = 1;  // for so many steps the gates' inputs are computed at once
  int64_t gates_stride_ = 0;
  // Bytes from the start of the scratch.
  size_t layers_at_[2] = {}, states_at_ = 0, state_bytes_ = 0, scratch_bytes_ = 0;
};

extern template struct RnnWeights<float>;
extern template struct RnnWeights<double>;
extern template class RnnSequence<float>;
extern template class RnnSequence<double>;

}  // namespace tensord::kernels
