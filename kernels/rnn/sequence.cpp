#include "kernels/rnn/sequence.h"

#include <cstring>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/base/parallel.h"
#include "kernels/rnn/barrier.h"

namespace tensord::kernels {
namespace {

constexpr size_t kScratchAlignment = 64;
constexpr size_t aligned(size_t bytes) {
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

// The cost of a product with the previous state, which reads all weights in each step: the time to load a weight from
// the L2 cache, or that of the arithmetic when several rows share it.
constexpr double kWeightNs = 0.04, kMultiplyNs = 0.02;
// The least time of a step for each additional thread: a barrier costs a few hundred ns.
constexpr double kMinStepNs = 1000;
// With this many rows a thread uses each weight often enough; with fewer, threads should divide the weights.
constexpr int64_t kRowsPerThread = 4;
// The gates' inputs of a chunk should stay in the cache until they are used.
constexpr int64_t kChunkBytes = 1 << 20, kMinChunkRows = 48;

}  // namespace

// The barrier of one run's threads.
template <class T>
struct RnnSequence<T>::Team {
  Team(int64_t groups, int64_t members)
      : all(static_cast<int>(groups * members)),
        group{StepBarrier(static_cast<int>(members)), StepBarrier(static_cast<int>(members))} {}
  StepBarrier all;
  StepBarrier group[2];
};

// One thread's part of a layer and direction.
template <class T>
struct RnnSequence<T>::Share {
  RnnPart part;
  int64_t first_projection_panel, end_projection_panel;
  StepBarrier* barrier;  // null: nobody to wait for
  int parties;
  bool is_first;  // loads and stores the states

  void wait() const {
    if (barrier) barrier->wait(parties);
  }
};

// The memory of a direction: previous and next state in turn, the cell, the LSTM's hidden units before their
// projection, the gates of a chunk.
template <class T>
struct RnnSequence<T>::State {
  T* h[2];
  T *cell, *hidden, *gates;
};

template <class T>
RnnSequence<T>::RnnSequence(const RnnShape& shape, std::vector<std::shared_ptr<const RnnWeights<T>>> weights,
                            int threads)
    : shape_(shape), weights_(std::move(weights)) {
  gates_stride_ = weights_[0]->panels * rnn_columns(shape.kind) * rnn_kernels<T>().lanes;
  const int64_t row_bytes = gates_stride_ * static_cast<int64_t>(sizeof(T));
  const int64_t rows = std::max(kChunkBytes / std::max<int64_t>(row_bytes, 1), kMinChunkRows);
  chunk_steps_ = std::clamp<int64_t>(rows / std::max<int64_t>(shape.batch, 1), 1, std::max<int64_t>(shape.steps, 1));
  cut(threads);
  lay_out_scratch();
}

template <class T>
void RnnSequence<T>::cut(int threads) {
  const RnnWeights<T>& first = *weights_[0];
  const auto batch = static_cast<double>(shape_.batch);
  const double weights =
      static_cast<double>(first.state * first.hidden) * (rnn_gates(shape_.kind) + (first.projection ? 1 : 0));
  const double step_ns = weights * std::max(kWeightNs, kMultiplyNs * batch) * sizeof(T) / sizeof(float);
  const double total_ns = step_ns * static_cast<double>(shape_.steps * shape_.layers * shape_.directions);
  const auto worth = static_cast<int64_t>(std::min<double>(threads, total_ns / kMinPartNs));
  if (worth < 2) return;
  if (const int64_t parts = std::min(worth, shape_.batch / kRowsPerThread); parts == worth) {
    by_rows_ = true;
    members_ = parts;
    return;
  }
  groups_ = shape_.directions;
  const auto worth_step = static_cast<int64_t>(step_ns / kMinStepNs);
  members_ = std::max<int64_t>(1, std::min({worth / groups_, worth_step, first.panels}));
}

template <class T>
void RnnSequence<T>::lay_out_scratch() {
  const RnnWeights<T>& first = *weights_[0];
  size_t at = shape_.is_packed ? aligned(static_cast<size_t>(shape_.steps) * sizeof(int64_t)) : 0;
  const auto take = [&at](int64_t elements) {
    const size_t start = at;
    at += aligned(static_cast<size_t>(elements) * sizeof(T));
    return start;
  };
  for (int64_t i = 0; i < std::min<int64_t>(shape_.layers - 1, 2); ++i)
    layers_at_[i] = take(shape_.rows * shape_.directions * first.state);
  states_at_ = at;
  take(shape_.batch * first.padded_state);
  take(shape_.batch * first.padded_state);
  take(shape_.kind == RnnKind::kLstm ? shape_.batch * first.padded_hidden : 0);
  take(first.projection ? shape_.batch * first.padded_hidden : 0);
  take(chunk_steps_ * shape_.batch * gates_stride_);
  state_bytes_ = at - states_at_;
  scratch_bytes_ = states_at_ + state_bytes_ * static_cast<size_t>(shape_.directions);
}

template <class T>
auto RnnSequence<T>::state_of(const RnnMemory<T>& memory, int64_t direction) const -> State {
  const RnnWeights<T>& first = *weights_[0];
  char* at = static_cast<char*>(memory.scratch) + states_at_ + state_bytes_ * static_cast<size_t>(direction);
  const auto take = [&at](int64_t elements) {
    T* start = reinterpret_cast<T*>(at);
    at += aligned(static_cast<size_t>(elements) * sizeof(T));
    return start;
  };
  State state{};
  state.h[0] = take(shape_.batch * first.padded_state);
  state.h[1] = take(shape_.batch * first.padded_state);
  state.cell = take(shape_.kind == RnnKind::kLstm ? shape_.batch * first.padded_hidden : 0);
  state.hidden = take(first.projection ? shape_.batch * first.padded_hidden : 0);
  state.gates = take(chunk_steps_ * shape_.batch * gates_stride_);
  return state;
}

template <class T>
ops::Cost RnnSequence<T>::cost() const {
  ops::Cost cost;
  double elements = 0;
  for (const auto& weights : weights_) {
    const double rows = static_cast<double>(weights->inputs + weights->state) * rnn_gates(shape_.kind) +
                        (weights->projection ? static_cast<double>(weights->state) : 0);
    elements += rows * static_cast<double>(weights->hidden);
    cost.flops += 2 * rows * static_cast<double>(weights->hidden * shape_.rows);
  }
  elements += static_cast<double>(shape_.rows * (weights_[0]->inputs + shape_.directions * weights_[0]->state));
  cost.bytes = elements * sizeof(T);
  return cost;
}

// Checks the sizes of packed data, which are inputs of each run.
template <class T>
RnnSteps RnnSequence<T>::read_sizes(const RnnMemory<T>& memory) const {
  RnnSteps steps{shape_.steps, shape_.batch, nullptr, nullptr};
  if (!shape_.is_packed) return steps;
  auto* first = static_cast<int64_t*>(memory.scratch);
  int64_t total = 0, max = shape_.batch;
  for (int64_t i = 0; i < shape_.steps; ++i) {
    const int64_t size = memory.sizes[i];
    check(size > 0 && size <= max && (i > 0 || size == shape_.batch), "batch_sizes of packed data have to start with ",
          shape_.batch, " and never grow, but got ", size, " at step ", i);
    first[i] = total;
    total += size;
    max = size;
  }
  check(total == shape_.rows, "packed data has ", shape_.rows, " rows, but batch_sizes add up to ", total);
  steps.sizes = memory.sizes;
  steps.first = first;
  return steps;
}

template <class T>
RnnRows<T> RnnSequence<T>::layer_output(const RnnMemory<T>& memory, int64_t layer) const {
  if (layer == shape_.layers - 1) return {memory.out, shape_.output_step_stride, shape_.output_row_stride};
  const int64_t row = shape_.directions * weights_[0]->state;
  auto* data = static_cast<char*>(memory.scratch) + layers_at_[layer % 2];
  return {reinterpret_cast<T*>(data), shape_.batch * row, row};
}

template <class T>
RnnRows<const T> RnnSequence<T>::layer_input(const RnnMemory<T>& memory, int64_t layer) const {
  if (layer == 0) return {memory.x, shape_.input_step_stride, shape_.input_row_stride};
  const RnnRows<T> rows = layer_output(memory, layer - 1);
  return {rows.data, rows.step_stride, rows.row_stride};
}

template <class T>
void RnnSequence<T>::run(const RnnMemory<T>& memory) const {
  const RnnSteps steps = read_sizes(memory);
  if (shape_.rows == 0) return;
  Team team(groups_, members_);
  if (groups_ * members_ == 1) return take_part(memory, steps, team, 0, 1);
  // One range for each thread; a smaller team gets ranges of several members. Members wait for each other, so none may
  // return early.
  const ContextPart<&ExecutionContext::cancellation> whole(nullptr);
  parallel_for(groups_ * members_, 1, [&](int64_t begin, int64_t end) { take_part(memory, steps, team, begin, end); });
}

// The work of the members [begin, end) on one thread.
template <class T>
void RnnSequence<T>::take_part(const RnnMemory<T>& memory, const RnnSteps& steps, Team& team, int64_t begin,
                               int64_t end) const {
  const int64_t batch = shape_.batch, members = members_;
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    for (int64_t direction = 0; direction < shape_.directions; ++direction) {
      const RnnWeights<T>& weights = *weights_[static_cast<size_t>(layer * shape_.directions + direction)];
      if (by_rows_) {
        const RnnPart part{batch * begin / members, batch * end / members, 0, weights.panels};
        run_direction(memory, steps, layer, direction, {part, 0, weights.projection_panels, nullptr, 1, true});
        continue;
      }
      const int64_t group = groups_ == 1 ? 0 : direction;
      const int64_t from = std::max(begin - group * members, int64_t{0}), to = std::min(end - group * members, members);
      if (from >= to) continue;
      const RnnPart part{0, batch, weights.panels * from / members, weights.panels * to / members};
      run_direction(memory, steps, layer, direction,
                    {part, weights.projection_panels * from / members, weights.projection_panels * to / members,
                     &team.group[group], static_cast<int>(to - from), from == 0});
    }
    if (!by_rows_) team.all.wait(static_cast<int>(end - begin));
  }
}

template <class T>
void RnnSequence<T>::run_direction(const RnnMemory<T>& memory, const RnnSteps& steps, int64_t layer, int64_t direction,
                                   const Share& share) const {
  const int64_t index = layer * shape_.directions + direction;
  const RnnWeights<T>& weights = *weights_[static_cast<size_t>(index)];
  const State state = state_of(memory, direction);
  RnnRows<T> out = layer_output(memory, layer);
  out.data += direction * weights.state;
  if (share.is_first) load_state(memory, state, index, share.part);
  share.wait();
  T* gates = state.gates + chunk_steps_ * share.part.first_row * gates_stride_;
  for (int64_t begin = 0; begin < steps.count; begin += chunk_steps_) {
    check_work_cancelled();
    const int64_t end = std::min(begin + chunk_steps_, steps.count);
    rnn_kernels<T>().input(rnn_columns(shape_.kind),
                           {steps, share.part, begin, end, direction == 1, layer_input(memory, layer), weights.input,
                            weights.bias, weights.inputs, gates, gates_stride_});
    const T* row = gates;
    for (int64_t turn = begin; turn < end; ++turn) {
      const int64_t step = direction == 1 ? steps.count - 1 - turn : turn;
      run_step(steps, step, weights, state, row, out, turn, share);
      row += std::max<int64_t>(share.part.end(steps, step) - share.part.first_row, 0) * gates_stride_;
    }
  }
  if (share.is_first) store_state(memory, steps, state, index, share.part);
  // The next layer reuses the states' memory.
  share.wait();
}

template <class T>
void RnnSequence<T>::run_step(const RnnSteps& steps, int64_t step, const RnnWeights<T>& weights, const State& state,
                              const T* gates, const RnnRows<T>& out, int64_t turn, const Share& share) const {
  RnnStepArgs<T> args{};
  args.part = share.part;
  args.part.end_row = share.part.end(steps, step);
  args.gates = gates;
  args.gates_stride = gates_stride_;
  args.weights = weights.recurrent;
  args.bias = weights.new_bias;
  args.inputs = weights.state;
  args.previous = state.h[turn % 2];
  args.previous_stride = weights.padded_state;
  args.next = weights.projection ? state.hidden : state.h[(turn + 1) % 2];
  args.next_stride = weights.padded_hidden;
  args.cell = state.cell;
  args.cell_stride = weights.padded_hidden;
  args.out = weights.projection ? nullptr : out.at(steps, step, 0);
  args.out_stride = out.row_stride;
  args.units = weights.hidden;
  args.from_last = turn % 2 == 1;
  rnn_kernels<T>().step(shape_.kind, args);
  share.wait();
  if (!weights.projection) return;
  args.part.first_panel = share.first_projection_panel;
  args.part.end_panel = share.end_projection_panel;
  args.weights = weights.projection;
  args.inputs = weights.hidden;
  args.previous = state.hidden;
  args.previous_stride = weights.padded_hidden;
  args.next = state.h[(turn + 1) % 2];
  args.next_stride = weights.padded_state;
  args.out = out.at(steps, step, 0);
  args.units = weights.state;
  rnn_kernels<T>().project(args);
  share.wait();
}

// Both copies of h get the initial state: in reverse, rows of packed data start at different steps.
template <class T>
void RnnSequence<T>::load_state(const RnnMemory<T>& memory, const State& state, int64_t index,
                                const RnnPart& part) const {
  const RnnWeights<T>& weights = *weights_[0];
  for (int64_t row = part.first_row; row < part.end_row; ++row) {
    const T* h0 = memory.h0 + (index * shape_.batch + row) * weights.state;
    for (T* copy : state.h) {
      T* h = copy + row * weights.padded_state;
      std::fill(std::copy_n(h0, weights.state, h), h + weights.padded_state, T(0));
    }
    if (shape_.kind != RnnKind::kLstm) continue;
    T* cell = state.cell + row * weights.padded_hidden;
    const T* c0 = memory.c0 + (index * shape_.batch + row) * weights.hidden;
    std::fill(std::copy_n(c0, weights.hidden, cell), cell + weights.padded_hidden, T(0));
  }
}

// A row's last state is in the copy that its last step wrote.
template <class T>
void RnnSequence<T>::store_state(const RnnMemory<T>& memory, const RnnSteps& steps, const State& state, int64_t index,
                                 const RnnPart& part) const {
  const RnnWeights<T>& weights = *weights_[0];
  const bool is_forward = index % shape_.directions == 0;
  int64_t turns = steps.count;
  for (int64_t row = part.first_row; row < part.end_row; ++row) {
    if (is_forward) {
      while (steps.rows(turns - 1) <= row) --turns;
    }
    const int64_t at = index * shape_.batch + row;
    std::copy_n(state.h[turns % 2] + row * weights.padded_state, weights.state, memory.hn + at * weights.state);
    if (shape_.kind == RnnKind::kLstm)
      std::copy_n(state.cell + row * weights.padded_hidden, weights.hidden, memory.cn + at * weights.hidden);
  }
}

template class RnnSequence<float>;
template class RnnSequence<double>;

}  // namespace tensord::kernels
