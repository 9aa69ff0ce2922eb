#include "core/jit/runtime/plan/batch_tiling.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/cpu_cache.h"
#include "core/base/error.h"
#include "core/jit/runtime/plan/batch_tile_loop.h"
#include "core/jit/runtime/plan/plan_placement.h"
#include "core/ops/attributes/batch_independence.h"
#include "core/ops/run.h"

namespace tensord::jit {

using ops::Value;

namespace {

// Rough costs, to weigh what tiling saves against what it costs.
constexpr double kNsPerByteFromMemory = 0.1;  // activations evicted from the cache
constexpr double kNsPerWeightByte = 0.03;     // re-reading weights while the CPU computes
constexpr double kNsPerFlop = 0.01;
constexpr double kBarrierNs = 5000;  // barrier after each call
constexpr double kMinNs = 50'000;    // less work is not worth distributing over threads
// Minimum share of the time to save if no threads are added, because memory is prefetched while products are computed.
constexpr double kMinShare = 0.03;

size_t aligned_part(size_t bytes) {
  constexpr size_t kAlign = 64;
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

int64_t sample_count(const PlanTensor& tensor) { return tensor.meta.ndim() > 0 ? tensor.meta.sizes()[0] : 0; }

// Bytes between two samples of a tensor whose root holds the samples one after another.
std::optional<int64_t> stride_of_samples(const PlanTensor& tensor, int64_t samples) {
  if (sample_count(tensor) != samples || tensor.meta.numel() == 0) return std::nullopt;
  const auto item = static_cast<int64_t>(size_of(tensor.meta.dtype()));
  int64_t extent = item;
  for (int64_t i = 1; i < tensor.meta.ndim(); ++i) {
    const auto dim = static_cast<size_t>(i);
    extent += (tensor.meta.sizes()[dim] - 1) * tensor.meta.strides()[dim] * item;
  }
  const int64_t stride = tensor.meta.strides()[0] * item;
  if (tensor.offset_bytes < 0 || tensor.offset_bytes + extent > stride) return std::nullopt;
  return stride;
}

// Calls first … end-1 of a plan, all batch-independent for the same number of samples.
struct Range {
  size_t first = 0, end = 0;
  int64_t samples = 0;
};

// For each operand of a call, the bytes between samples; 0 if all samples share it. Empty if the call is not
// batch-independent.
std::optional<std::vector<int64_t>> strides_of(const Plan& plan, const PlanCall& call, int64_t samples) {
  if (!call.prepared || samples < 2 || !ops::is_batch_independent(*call.op, call.arguments)) return std::nullopt;
  int64_t max_dims = 0;
  for (const uint32_t id : call.inputs) max_dims = std::max(max_dims, plan.tensors[id].meta.ndim());
  std::vector<int64_t> strides;
  bool has_split = false;
  for (const uint32_t id : call.inputs) {
    const PlanTensor& tensor = plan.tensors[id];
    const bool is_shared = tensor.meta.ndim() < max_dims || sample_count(tensor) == 1;
    const std::optional<int64_t> stride = is_shared ? 0 : stride_of_samples(tensor, samples);
    if (!stride) return std::nullopt;
    has_split = has_split || !is_shared;
    strides.push_back(*stride);
  }
  for (const uint32_t id : call.outputs) {
    const std::optional<int64_t> stride = stride_of_samples(plan.tensors[id], samples);
    if (!stride) return std::nullopt;
    strides.push_back(*stride);
  }
  return has_split ? std::optional(std::move(strides)) : std::nullopt;
}

// Builds the plan for one tile of a range's samples.
class BodyBuilder {
 public:
  BodyBuilder(const Plan& plan, const Range& range, std::vector<bool> leaves, int64_t tile,
              const PlanSettings& settings)
      : plan_(plan), range_(range), leaves_(std::move(leaves)), tile_(tile), settings_(settings) {}

  // Returns null if an operator does not accept the smaller shapes.
  std::unique_ptr<const Plan> build() {
    for (size_t i = range_.first; i < range_.end; ++i) {
      for (const uint32_t id : plan_.calls[i].outputs) made_.insert({plan_.tensors[id].root, true});
    }
    for (size_t i = range_.first; i < range_.end; ++i) {
      if (!add(plan_.calls[i])) return nullptr;
    }
    place_memory(*body_, escapes_, settings_);
    // A result may have taken the memory of an operand, so the order is only known now.
    outputs.resize(made_outputs_.size());
    for (const auto& [outer, tensor] : made_outputs_) outputs[body_->roots[body_->tensors[tensor].root].index] = outer;
    return std::move(body_);
  }

  // The loop's operands: roots of the whole plan, with the bytes between samples.
  using Operand = std::pair<uint32_t, int64_t>;
  std::vector<Operand> inputs, outputs;

 private:
  bool add(const PlanCall& whole) {
    const auto strides = strides_of(plan_, whole, range_.samples);
    if (!strides) return false;
    PlanCall call;
    call.op = whole.op;
    call.location = whole.location;
    call.name = whole.name;
    std::vector<Tensor> operands, results;
    size_t next = 0;
    for (const uint32_t id : whole.inputs) call.inputs.push_back(tensor_for(id, (*strides)[next++]));
    for (const uint32_t id : whole.outputs) call.outputs.push_back(tensor_for(id, (*strides)[next++]));
    for (const uint32_t id : call.inputs) operands.push_back(body_->tensors[id].meta);
    for (const uint32_t id : call.outputs) results.push_back(body_->tensors[id].meta);
    next = 0;
    for (const Value& argument : whole.arguments) call.arguments.push_back(with_tensors(argument, operands, next));
    if (!gives(call, results)) return false;
    call.prepared = prepare_call(call, results, plan_.device, settings_);
    if (!call.prepared) return false;
    call.scratch_bytes = call.prepared->scratch_bytes;
    call.detail = whole.detail;
    body_->calls.push_back(std::move(call));
    return true;
  }

  // Whether the operator's shape function gives the smaller results for the smaller operands.
  static bool gives(const PlanCall& call, const std::vector<Tensor>& results) {
    std::vector<Value> inferred;
    try {
      inferred = ops::infer(*call.op, call.arguments);
    } catch (const Error&) {
      return false;
    }
    size_t next = 0;
    const auto is_next = [&](const Value& value) {
      return value.is_strided() && next < results.size() && value.to_tensor().sizes() == results[next++].sizes();
    };
    for (const Value& value : inferred) {
      const bool is_same = value.is_list()
                               ? std::all_of(value.to_list()->items.begin(), value.to_list()->items.end(), is_next)
                               : is_next(value);
      if (!is_same) return false;
    }
    return next == results.size();
  }

  uint32_t tensor_for(uint32_t id, int64_t stride) {
    const PlanTensor& whole = plan_.tensors[id];
    Tensor meta = whole.meta;
    if (stride > 0) {
      Dims sizes = meta.sizes();
      sizes[0] = tile_;
      meta = meta.as_view(sizes, meta.strides(), meta.offset());
    }
    const uint32_t root = root_for(whole.root, stride);
    body_->tensors.push_back({std::move(meta), root, whole.offset_bytes});
    const auto number = static_cast<uint32_t>(body_->tensors.size() - 1);
    if (escapes_[root] && !known_outputs_.contains(whole.root)) {
      known_outputs_.insert({whole.root, true});
      made_outputs_.push_back({{whole.root, stride}, number});
    }
    return number;
  }

  uint32_t root_for(uint32_t outer, int64_t stride) {
    const auto [it, is_new] = roots_.try_emplace({outer, stride}, static_cast<uint32_t>(body_->roots.size()));
    if (!is_new) return it->second;
    const bool is_made = made_.contains(outer);
    PlanRoot root{.bytes = stride > 0 ? static_cast<size_t>(stride * tile_) : plan_.roots[outer].bytes};
    if (!is_made) {
      root.kind = PlanRoot::Kind::kInput;
      root.index = static_cast<uint32_t>(inputs.size());
      inputs.emplace_back(outer, stride);
    }
    body_->roots.push_back(root);
    escapes_.push_back(is_made && leaves_[outer]);
    return it->second;
  }

  const Plan& plan_;
  const Range& range_;
  const std::vector<bool> leaves_;  // by root: made in the range and used after it
  const int64_t tile_;
  const PlanSettings& settings_;
  std::unique_ptr<Plan> body_ = std::make_unique<Plan>();
  std::vector<bool> escapes_;
  std::map<uint32_t, bool> made_, known_outputs_;
  std::map<Operand, uint32_t> roots_;
  std::vector<std::pair<Operand, uint32_t>> made_outputs_;  // with a tensor of the body in it
};

class Splitter {
 public:
  Splitter(Plan& plan, std::vector<bool>& escapes, const PlanSettings& settings)
      : plan_(plan), escapes_(escapes), settings_(settings) {
    cache_bytes_ = static_cast<double>(settings.cache_bytes > 0 ? settings.cache_bytes : last_cache_bytes() / 4);
  }

  void run() {
    std::vector<Range> ranges;
    for (size_t i = 0; i < plan_.calls.size();) {
      const Range range = range_from(i);
      if (range.end - range.first >= 2) ranges.push_back(range);
      i = std::max(range.end, i + 1);
    }
    // From the last one, so that the indices of earlier calls stay valid.
    for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) consider(*range);
  }

 private:
  Range range_from(size_t first) const {
    Range range{first, first, 0};
    const PlanCall& begin = plan_.calls[first];
    if (begin.outputs.empty()) return range;
    range.samples = sample_count(plan_.tensors[begin.outputs[0]]);
    std::map<uint32_t, int64_t> made;  // roots, with the bytes between samples
    while (range.end < plan_.calls.size()) {
      const PlanCall& call = plan_.calls[range.end];
      const auto strides = strides_of(plan_, call, range.samples);
      if (!strides) break;
      bool fits = true;
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        const auto from = made.find(plan_.tensors[call.inputs[i]].root);
        fits = fits && (from == made.end() || from->second == (*strides)[i]);
      }
      if (!fits) break;
      for (size_t i = 0; i < call.outputs.size(); ++i)
        made[plan_.tensors[call.outputs[i]].root] = (*strides)[call.inputs.size() + i];
      ++range.end;
    }
    return range;
  }

  double bytes_of(const std::vector<uint32_t>& tensors) const {
    double bytes = 0;
    for (const uint32_t id : tensors) bytes += static_cast<double>(plan_.tensors[id].meta.size_bytes());
    return bytes;
  }

  // Peak of live bytes in a range, for the whole batch.
  double peak_bytes(const Range& range) const {
    const std::vector<int> last = last_uses(plan_);
    std::vector<size_t> live;
    double now = 0, max = 0;
    for (size_t i = range.first; i < range.end; ++i) {
      for (const auto* tensors : {&plan_.calls[i].inputs, &plan_.calls[i].outputs}) {
        for (const uint32_t id : *tensors) {
          const size_t root = plan_.tensors[id].root;
          if (std::find(live.begin(), live.end(), root) != live.end()) continue;
          live.push_back(root);
          now += static_cast<double>(plan_.roots[root].bytes);
        }
      }
      max = std::max(max, now);
      std::erase_if(live, [&](size_t root) {
        if (last[root] > static_cast<int>(i)) return false;
        now -= static_cast<double>(plan_.roots[root].bytes);
        return true;
      });
    }
    return max;
  }

  // Nanoseconds that a call saves if it runs `tile` samples at a time; negative if it loses.
  double gain_ns(const PlanCall& call, const Range& range, int64_t tile, bool is_over_cache) const {
    const double operands = bytes_of(call.inputs) + bytes_of(call.outputs);
    const double weights = std::max(0.0, call.cost.bytes - operands);
    const double turns = static_cast<double>(range.samples) / static_cast<double>(tile);
    double gain = -weights * (turns - 1) * kNsPerWeightByte;
    if (is_over_cache) gain += operands * kNsPerByteFromMemory;
    if (settings_.threads > 1 && range.samples >= settings_.threads) gain += kBarrierNs;
    return gain;
  }

  // The largest divisor of `count` for which the tensors of that many samples fit the cache.
  int64_t tile_for(int64_t count, double sample_bytes, double cache) const {
    int64_t best = 1;
    for (int64_t tile = 2; tile <= count; ++tile) {
      if (count % tile == 0 && static_cast<double>(tile) * sample_bytes <= cache) best = tile;
    }
    return best;
  }

  void consider(Range range) {
    const int64_t teams = settings_.threads;
    const bool is_spread = teams > 1 && range.samples >= teams;
    const double peak = peak_bytes(range);
    const bool is_over_cache = peak > cache_bytes_;
    if (!is_over_cache && !is_spread) return;
    const int64_t share = is_spread ? range.samples / teams : range.samples;
    const double sample_bytes = peak / static_cast<double>(range.samples);
    const int64_t tile = tile_for(share, sample_bytes, cache_bytes_ / static_cast<double>(is_spread ? teams : 1));
    const auto gain = [&](size_t i) { return gain_ns(plan_.calls[i], range, tile, is_over_cache); };
    while (range.end > range.first && gain(range.end - 1) < 0) --range.end;
    while (range.end > range.first && gain(range.first) < 0) ++range.first;
    if (range.end - range.first < 2) return;
    double total = 0, work_ns = 0;
    for (size_t i = range.first; i < range.end; ++i) {
      total += gain(i);
      work_ns += plan_.calls[i].cost.flops * kNsPerFlop + plan_.calls[i].cost.bytes * kNsPerByteFromMemory;
    }
    const bool is_worth = is_spread ? total > 0 && (is_over_cache || work_ns >= kMinNs) : total > work_ns * kMinShare;
    if (is_worth) split(range, tile, is_spread);
  }

  // By root: made in the range, and used after it or returned.
  std::vector<bool> leaving(const Range& range) const {
    std::vector<bool> leaves = escapes_;
    const std::vector<int> last = last_uses(plan_);
    for (size_t root = 0; root < leaves.size(); ++root)
      leaves[root] = leaves[root] || last[root] >= static_cast<int>(range.end);
    return leaves;
  }

  void split(const Range& range, int64_t tile, bool is_spread) {
    auto loop = std::make_shared<SampleLoop>();
    loop->samples = range.samples;
    PlanCall call;
    const int64_t teams = is_spread ? settings_.threads : 1;
    const int64_t rest = range.samples % teams;
    if (!add_part(*loop, range, 0, range.samples - rest, tile, static_cast<int>(teams), call)) return;
    if (rest > 0 && !add_part(*loop, range, range.samples - rest, range.samples, 1, 1, call)) return;
    const PlanCall& begin = plan_.calls[range.first];
    call.op = begin.op;
    call.location = begin.location;
    call.name = "samples";
    call.detail = concat(range.end - range.first, " calls, ", range.samples, " samples");
    call.scratch_bytes = loop->scratch_bytes;
    for (size_t i = range.first; i < range.end; ++i) {
      call.cost.flops += plan_.calls[i].cost.flops;
      call.cost.bytes += plan_.calls[i].cost.bytes;
    }
    call.loop = std::move(loop);
    const auto at = plan_.calls.begin();
    plan_.calls.erase(at + static_cast<std::ptrdiff_t>(range.first) + 1, at + static_cast<std::ptrdiff_t>(range.end));
    plan_.calls[range.first] = std::move(call);
  }

  // Returns false if an operator does not accept the smaller shapes. The first part determines the call's operands.
  bool add_part(SampleLoop& loop, const Range& range, int64_t first, int64_t end, int64_t tile, int teams,
                PlanCall& call) {
    PlanSettings settings = settings_;
    if (teams > 1) settings.threads = 1;
    BodyBuilder builder(plan_, range, leaving(range), tile, settings);
    SampleLoop::Part part{.first = first, .end = end, .tile = tile, .teams = teams, .body = builder.build()};
    if (!part.body) return false;
    const double share = static_cast<double>(end - first) / static_cast<double>(range.samples);
    for (size_t i = range.first; i < range.end; ++i) {
      const ops::Cost& cost = plan_.calls[i].cost;
      part.costs.push_back({cost.flops * share, cost.bytes * share});
      part.pointer_count += plan_.calls[i].inputs.size() + plan_.calls[i].outputs.size();
    }
    const size_t table = (part.pointer_count + part.body->calls.size()) * sizeof(void*);
    part.team_bytes = aligned_part(table) + aligned_part(part.body->arena_bytes);
    loop.scratch_bytes = std::max(loop.scratch_bytes, part.team_bytes * static_cast<size_t>(teams));
    if (loop.parts.empty()) {
      for (const auto& [root, stride] : builder.inputs) add_operand(root, stride, call.inputs, loop.input_strides);
      for (const auto& [root, stride] : builder.outputs) add_operand(root, stride, call.outputs, loop.output_strides);
    } else if (!has_same_outputs(loop, call, builder)) {
      return false;
    }
    loop.parts.push_back(std::move(part));
    return true;
  }

  void add_operand(uint32_t root, int64_t stride, std::vector<uint32_t>& operands, std::vector<int64_t>& strides) {
    const Tensor meta =
        Tensor::meta_strided(Dims{static_cast<int64_t>(plan_.roots[root].bytes)}, Dims{1}, DType::kUInt8, plan_.device);
    plan_.tensors.push_back({meta, root, 0});
    operands.push_back(static_cast<uint32_t>(plan_.tensors.size() - 1));
    strides.push_back(stride);
  }

  // Kernels may differ in which result takes whose memory, which affects the order of outputs.
  bool has_same_outputs(const SampleLoop& loop, const PlanCall& call, const BodyBuilder& builder) const {
    if (builder.outputs.size() != call.outputs.size() || builder.inputs.size() != call.inputs.size()) return false;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const bool is_same = plan_.tensors[call.outputs[i]].root == builder.outputs[i].first &&
                           loop.output_strides[i] == builder.outputs[i].second;
      if (!is_same) return false;
    }
    return true;
  }

  Plan& plan_;
  std::vector<bool>& escapes_;
  const PlanSettings& settings_;
  double cache_bytes_ = 0;
};

}  // namespace

std::unique_ptr<const ops::PreparedCall> prepare_call(const PlanCall& call, const std::vector<Tensor>& outputs,
                                                      Device device, const PlanSettings& settings) {
  const ops::PrepareFn& function = call.op->prepare[static_cast<size_t>(device.kind)];
  if (!function) return nullptr;
  const bool has_kernel = call.op->has_fill(device.kind);
  if (has_kernel && (settings.plain.contains("*") || settings.plain.contains(call.op->schema.name))) return nullptr;
  return function({*call.op, call.arguments, outputs, settings.threads, settings.precision, settings.packs});
}

void split_samples(Plan& plan, std::vector<bool>& escapes, const PlanSettings& settings) {
  Splitter(plan, escapes, settings).run();
}

}  // namespace tensord::jit
