#include "core/distributed/ddp/reducer.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "core/autograd/hooks/callbacks.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/distributed/ddp/sparse_gradients.h"
#include "core/tensor/device_copy.h"

namespace tensord::distributed {
namespace {

constexpr size_t kFirstLimit = size_t{1} << 20, kLimit = size_t{25} << 20;

std::vector<size_t> limits_of(const ReducerOptions& options) {
  if (options.bucket_cap_bytes > 0) return {options.bucket_cap_bytes};
  return {kFirstLimit, kLimit};
}

std::string layout_of(const NamedParameter& parameter) {
  return concat(parameter.name, " ", describe(parameter.tensor), " with strides ",
                to_string(parameter.tensor.strides()));
}

std::string text_of(std::span<const NamedParameter> tensors) {
  std::string text;
  for (const NamedParameter& tensor : tensors) text += layout_of(tensor) + "\n";
  return text;
}

[[noreturn]] void fail_changed(const std::string& name, const char* how) {
  fail(ErrorCode::kFailedPrecondition, "Your training graph has changed in this iteration: ", name, how,
       " than in the first one. This is not compatible with static_graph");
}

// Whether the gradient is a view of the bucket's memory.
bool lies_in(const Tensor& gradient, const Tensor& view) {
  return gradient.storage() == view.storage() && gradient.offset() == view.offset() &&
         gradient.strides() == view.strides();
}

// The first line that differs.
std::string difference_of(const std::string& own, const std::string& other) {
  const size_t common = std::mismatch(own.begin(), own.end(), other.begin(), other.end()).first - own.begin();
  const auto line = [common](const std::string& text) {
    const size_t before = common == 0 ? std::string::npos : text.rfind('\n', common - 1);
    const size_t start = before == std::string::npos ? 0 : before + 1;
    const std::string found = start < text.size() ? text.substr(start, text.find('\n', start) - start) : "";
    return found.empty() ? std::string("nothing") : found;
  };
  return concat(line(own), " on rank 0, ", line(other));
}

}  // namespace

Reducer::Reducer(ProcessGroup& group, std::vector<NamedParameter> parameters, std::vector<NamedParameter> buffers,
                 ReducerOptions options)
    : group_(group), named_(std::move(parameters)), buffers_(std::move(buffers)), options_(std::move(options)) {
  check(!named_.empty(),
        "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
        "gradient");
  check_parameters();
  check_alike();
  if (options_.init_sync) {
    broadcast(named_, 0);
    broadcast(buffers_, 0);
  }
  // One bucket holds everything. With unused parameters, gradients give no order, so the order of definition is used.
  std::vector<size_t> all(parameters_.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<size_t> order = dense_of(all);
  is_ordered_ = options_.find_unused_parameters && !options_.static_graph;
  BucketPlan plan = plan_buckets(
      parameters_, order, is_ordered_ ? limits_of(options_) : std::vector<size_t>{std::numeric_limits<size_t>::max()});
  std::sort(plan.begin(), plan.end(), [](const auto& a, const auto& b) {
    return *std::min_element(a.begin(), a.end()) < *std::min_element(b.begin(), b.end());
  });
  // The parameter defined last gets its gradient first.
  std::reverse(plan.begin(), plan.end());
  make_buckets(plan);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    accumulators_.push_back(autograd::gradient_edge(parameters_[i]).node);
    hooks_.push_back(accumulators_.back()->register_hook(
        [this, i](const std::vector<Tensor>&, const std::vector<Tensor>&) -> std::optional<std::vector<Tensor>> {
          on_gradient(i);
          return std::nullopt;
        }));
  }
}

Reducer::~Reducer() {
  for (autograd::HookHandle& hook : hooks_) hook.remove();
}

void Reducer::check_parameters() {
  for (const NamedParameter& parameter : named_) {
    check(autograd::is_leaf(parameter.tensor) && autograd::requires_grad(parameter.tensor),
          "DistributedDataParallel: ", parameter.name, " is not a leaf that requires a gradient");
    check(parameter.tensor.device() == named_.front().tensor.device(), "DistributedDataParallel: ", parameter.name,
          " is on ", to_string(parameter.tensor.device()), ", ", named_.front().name, " on ",
          to_string(named_.front().tensor.device()));
    const auto& names = options_.sparse;
    parameters_.push_back(parameter.tensor);
    is_sparse_.push_back(std::find(names.begin(), names.end(), parameter.name) != names.end());
  }
  for (const std::string& name : options_.sparse) {
    const bool is_there =
        std::any_of(named_.begin(), named_.end(), [&](const auto& each) { return each.name == name; });
    check(is_there, "DistributedDataParallel: there is no parameter ", name, ", whose gradients are said to be sparse");
  }
}

// Removes sparse parameters, which have buckets of their own.
std::vector<size_t> Reducer::dense_of(std::span<const size_t> order) const {
  std::vector<size_t> dense;
  std::copy_if(order.begin(), order.end(), std::back_inserter(dense), [this](size_t i) { return !is_sparse_[i]; });
  return dense;
}

void Reducer::check_alike() {
  std::string text = text_of(named_) + text_of(buffers_);
  for (size_t i = 0; i < named_.size(); ++i) {
    if (is_sparse_[i]) text += concat("sparse gradients of ", named_[i].name, "\n");
  }
  const auto all = group_.all_gather_bytes(text);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    check(all[rank] == all[0],
          "DistributedDataParallel: parameters of the ranks differ: ", difference_of(all[0], all[rank]), " on rank ",
          rank);
  }
}

void Reducer::broadcast(std::span<const NamedParameter> tensors, int root) {
  std::vector<WorkPtr> works;
  for (const NamedParameter& tensor : tensors) works.push_back(group_.broadcast(tensor.tensor, root));
  for (const WorkPtr& work : works) work->wait();
  if (group_.rank() == root) return;
  for (const NamedParameter& tensor : tensors) tensor.tensor.storage()->bump_version();
}

void Reducer::broadcast_buffers(int root) { broadcast(buffers_, root); }
void Reducer::broadcast_parameters(int root) { broadcast(named_, root); }

void Reducer::make_buckets(BucketPlan plan) {
  const size_t dense = plan.size();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (is_sparse_[i]) plan.push_back({i});
  }
  buckets_.clear();
  places_.assign(parameters_.size(), {});
  for (const auto& indices : plan) {
    for (size_t i = 0; i < indices.size(); ++i) places_[indices[i]] = {buckets_.size(), i};
    buckets_.emplace_back(indices, parameters_, buckets_.size() >= dense);
  }
}

void Reducer::register_hook(CommHook hook) {
  const MutexLock lock(mutex_);
  if (options_.hook) {
    fail(ErrorCode::kFailedPrecondition, "register_comm_hook can only be called once: there is a communication hook");
  }
  options_.hook = std::move(hook);
}

bool Reducer::has(const Tensor& parameter) const {
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [&](const Tensor& known) { return known.is_same(parameter); });
}

BucketPlan Reducer::buckets() const {
  const MutexLock lock(mutex_);
  BucketPlan plan;
  for (const Bucket& bucket : buckets_) plan.push_back(bucket.indices);
  return plan;
}

void Reducer::skip() {
  const MutexLock lock(mutex_);
  reduces_ = false;
}

void Reducer::start_pass(int divisor) {
  if (is_unfinished_) fail_unfinished();
  divisor_ = divisor > 0 ? divisor : group_.size();
  check(!options_.hook || divisor_ == group_.size(),
        "DistributedDataParallel: communication hooks divide by the number of all ranks");
  reduces_ = true;
  waits_.clear();
  order_.clear();
  is_ready_.assign(parameters_.size(), false);
  is_used_.assign(parameters_.size(), false);
  for (Bucket& bucket : buckets_) bucket.pending = bucket.indices.size();
  if (!options_.static_graph) return;
  if (is_recording()) uses_.assign(parameters_.size(), 0);
  uses_left_ = uses_;
}

void Reducer::prepare(std::span<const Tensor> outputs, int divisor) {
  const MutexLock lock(mutex_);
  start_pass(divisor);
  if (is_recording() || !(options_.find_unused_parameters || options_.static_graph)) return;
  std::vector<bool> is_reached;
  if (options_.static_graph) {
    for (const int uses : uses_) is_reached.push_back(uses > 0);
  } else {
    is_reached = reached_from(outputs);
  }
  // Unused parameters are sent with the first gradient that arrives, because a pass that never runs must not have
  // started a reduction.
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_reached[i]) take(i);
  }
}

std::vector<bool> Reducer::reached_from(std::span<const Tensor> outputs) const {
  std::unordered_set<const autograd::Node*> seen;
  std::vector<const autograd::Node*> open;
  const auto enter = [&](const autograd::Edge& edge) {
    if (edge && seen.insert(edge.node.get()).second) open.push_back(edge.node.get());
  };
  for (const Tensor& output : outputs) {
    if (output.defined() && autograd::requires_grad(output)) enter(autograd::gradient_edge(output));
  }
  while (!open.empty()) {
    const autograd::Node* const node = open.back();
    open.pop_back();
    for (const autograd::Edge& edge : node->next_edges()) enter(edge);
  }
  std::vector<bool> is_reached;
  for (const auto& accumulator : accumulators_) is_reached.push_back(seen.contains(accumulator.get()));
  return is_reached;
}

void Reducer::on_gradient(size_t index) {
  const MutexLock lock(mutex_);
  if (!reduces_) return;
  if (options_.static_graph && !counts_down(index)) return;
  check(!is_ready_[index], "Expected to mark a variable ready only once. The gradient of ", named_[index].name,
        " came twice for one forward: two backward passes of it, or of parts of it that were found not to be used");
  is_used_[index] = true;
  is_unfinished_ = true;
  if (!is_ordered_) order_.push_back(index);
  take(index);
  send_ready();
}

// With a static graph: whether all gradients of a parameter have arrived. During the first pass this is unknown until
// its end.
bool Reducer::counts_down(size_t index) {
  const bool is_first = !std::exchange(is_unfinished_, true);
  if (is_recording()) {
    if (is_first) autograd::queue_callback([this] { send_recorded(); });
    is_used_[index] = true;
    if (uses_[index]++ == 0 && !is_ordered_) order_.push_back(index);
    return false;
  }
  if (uses_left_[index] == 0) fail_changed(named_[index].name, " has more gradients");
  return --uses_left_[index] == 0;
}

void Reducer::send_recorded() {
  {
    const MutexLock lock(mutex_);
    is_recorded_ = true;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (uses_[i] == 0 && !is_ordered_) order_.push_back(i);
      take(i);
    }
    while (waits_.size() < buckets_.size()) waits_.push_back(send(buckets_[waits_.size()], waits_.size()));
  }
  finish_pass();
}

void Reducer::shadow_pass(int divisor, bool takes_result) {
  const MutexLock lock(mutex_);
  start_pass(divisor);
  for (size_t i = parameters_.size(); i-- > 0;) order_.push_back(i);
  for (size_t i = 0; i < buckets_.size(); ++i) {
    // This rank's gradients may be views of the buckets.
    Bucket own(buckets_[i].indices, parameters_, buckets_[i].is_sparse);
    Bucket& zeros = takes_result || own.is_sparse ? buckets_[i] : own;
    zeros.sparse = {};
    if (!zeros.is_sparse) zero_elements(zeros.flat);
    waits_.push_back(send(zeros, i));
  }
  wait_for_buckets();
  reduces_ = false;
  if (takes_result) {
    for (size_t i = 0; i < parameters_.size(); ++i) put_back(i, is_used_by_anyone_[i]);
  }
  if (!is_ordered_) order_buckets_anew();
}

// Copies the gradient, including what unreduced passes accumulated, into its bucket.
void Reducer::take(size_t index) {
  const Place place = places_[index];
  Bucket& bucket = buckets_[place.bucket];
  if (bucket.is_sparse) return take_sparse(bucket, index);
  const Tensor& view = bucket.views[place.position];
  const Tensor gradient = autograd::grad(parameters_[index]);
  if (ops::as_sparse(gradient)) {
    fail(ErrorCode::kUnimplemented, "DistributedDataParallel does not take a sparse gradient of ", named_[index].name,
         ", which is not among those that were said to be sparse");
  }
  if (!gradient.defined()) {
    zero_elements(view);
  } else if (!lies_in(gradient, view)) {
    view.copy_from(gradient);
    if (options_.gradient_as_bucket_view) autograd::set_grad(parameters_[index], view);
  }
  is_ready_[index] = true;
  --bucket.pending;
}

void Reducer::take_sparse(Bucket& bucket, size_t index) {
  const Tensor gradient = autograd::grad(parameters_[index]);
  if (gradient.defined()) check_sparse_gradient(named_[index].name, gradient);
  bucket.sparse = ops::as_sparse(gradient);
  is_ready_[index] = true;
  --bucket.pending;
}

// Sends buckets strictly in order, whichever is full first, so that all ranks send in the same order.
void Reducer::send_ready() {
  while (waits_.size() < buckets_.size() && buckets_[waits_.size()].pending == 0) {
    waits_.push_back(send(buckets_[waits_.size()], waits_.size()));
    if (waits_.size() == buckets_.size()) autograd::queue_callback([this] { finish_pass(); });
  }
}

std::function<void()> Reducer::send(Bucket& bucket, size_t index) {
  // The number of rows is known only after all ranks have reported theirs, so nothing is sent during the pass.
  if (bucket.is_sparse) {
    return [this, &bucket, divisor = divisor_] {
      bucket.sparse = reduce_sparse(group_, parameters_[bucket.indices.front()], bucket.sparse, divisor);
    };
  }
  // Sparse buckets come last and bypass the hook.
  const bool is_last = index + 1 == buckets_.size() || buckets_[index + 1].is_sparse;
  if (options_.hook) return options_.hook(group_, {bucket.flat, index, is_last, bucket.views});
  ReduceOp op = kSum;
  if (bucket.flat.device().is_host()) {
    scale_elements(bucket.flat.dtype(), bucket.flat.raw_data(), static_cast<size_t>(bucket.flat.numel()),
                   1.0 / divisor_);
  } else {
    op = premul_sum(1.0 / divisor_);
  }
  return [work = group_.all_reduce(bucket.flat, op)] { work->wait(); };
}

std::vector<bool> Reducer::used_by_anyone() {
  // The usage that a static graph's first pass recorded is final.
  if (options_.static_graph && is_ordered_) return is_used_by_anyone_;
  if (!options_.find_unused_parameters && !options_.static_graph) return std::vector<bool>(parameters_.size(), true);
  const Tensor own = Tensor::empty(Dims{static_cast<int64_t>(parameters_.size())}, DType::kBool);
  std::copy(is_used_.begin(), is_used_.end(), own.data<bool>());
  const Tensor all = own.to(group_.device());
  group_.all_reduce(all)->wait();
  const Tensor used = host_copy(all);
  return std::vector<bool>(used.data<bool>(), used.data<bool>() + used.numel());
}

void Reducer::wait_for_buckets() {
  const auto start = std::chrono::steady_clock::now();
  for (const auto& wait : waits_) wait();
  is_used_by_anyone_ = used_by_anyone();
  waited_ += std::chrono::steady_clock::now() - start;
  waits_.clear();
}

void Reducer::finish_pass() {
  const MutexLock lock(mutex_);
  wait_for_buckets();
  for (size_t i = 0; i < parameters_.size(); ++i) put_back(i, is_used_by_anyone_[i]);
  // Hooks that run without a prepared pass report all parameters as ready, which is the caller's error.
  is_unfinished_ = false;
  if (!is_ordered_) order_buckets_anew();
}

void Reducer::put_back(size_t index, bool is_used) {
  // A parameter that no rank used has no gradient, or keeps that of earlier passes.
  if (!is_used) return;
  if (const Bucket& bucket = buckets_[places_[index].bucket]; bucket.is_sparse) {
    return autograd::set_grad(parameters_[index], Tensor(bucket.sparse));
  }
  const Tensor& view = buckets_[places_[index].bucket].views[places_[index].position];
  const Tensor gradient = autograd::grad(parameters_[index]);
  if (gradient.defined() && lies_in(gradient, view)) {
    view.storage()->bump_version();
  } else if (gradient.defined()) {
    gradient.copy_from(view);
    gradient.storage()->bump_version();
  } else {
    autograd::set_grad(parameters_[index], options_.gradient_as_bucket_view ? view : view.clone(true));
  }
}

// All ranks use rank 0's order, so that their buckets agree.
void Reducer::order_buckets_anew() {
  is_ordered_ = true;
  const Tensor own = Tensor::empty(Dims{static_cast<int64_t>(parameters_.size())}, DType::kInt64);
  std::copy(order_.begin(), order_.end(), own.data<int64_t>());
  const Tensor sent = own.to(group_.device());
  group_.broadcast(sent, 0)->wait();
  const Tensor order = host_copy(sent);
  std::vector<size_t> indices;
  std::vector<bool> is_there(parameters_.size(), false);
  for (int64_t i = 0; i < order.numel(); ++i) {
    const auto index = static_cast<size_t>(order.data<int64_t>()[i]);
    check_internal(index < is_there.size() && !is_there[index], "rank 0 sent an order of gradients that is none");
    is_there[index] = true;
    indices.push_back(index);
  }
  make_buckets(plan_buckets(parameters_, dense_of(indices), limits_of(options_)));
  if (!options_.gradient_as_bucket_view) return;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor gradient = autograd::grad(parameters_[i]);
    if (!gradient.defined() || is_sparse_[i]) continue;  // the zero gradients of a rank that shadows a pass
    const Tensor& view = buckets_[places_[i].bucket].views[places_[i].position];
    view.copy_from(gradient);
    autograd::set_grad(parameters_[i], view);
  }
}

void Reducer::fail_unfinished() const {
  std::string missing;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_ready_[i] && options_.static_graph && is_recorded_) fail_changed(named_[i].name, " has fewer gradients");
    if (!is_ready_[i]) missing += concat(missing.empty() ? "" : ", ", i, " (", named_[i].name, ")");
  }
  fail(
      ErrorCode::kFailedPrecondition,
      "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
      "your module has parameters that were not used in producing loss; find_unused_parameters allows that. Parameters "
      "which did not receive grad for rank ",
      group_.rank(), ": ", missing);
}

namespace {

CommHook compress_hook(DType dtype) {
  return [dtype](ProcessGroup& group, const GradBucket& bucket) -> std::function<void()> {
    const Tensor sent = bucket.flat.dtype() == dtype ? bucket.flat.clone() : bucket.flat.to(dtype);
    const bool is_host = sent.device().is_host();
    if (is_host) finish_elements(kAvg, dtype, sent.raw_data(), static_cast<size_t>(sent.numel()), group.size());
    return [work = group.all_reduce(sent, is_host ? kSum : premul_sum(1.0 / group.size())), sent, flat = bucket.flat] {
      work->wait();
      flat.copy_from(sent);
    };
  };
}

}  // namespace

CommHook fp16_compress_hook() { return compress_hook(DType::kFloat16); }
CommHook bf16_compress_hook() { return compress_hook(DType::kBFloat16); }

}  // namespace tensord::distributed
