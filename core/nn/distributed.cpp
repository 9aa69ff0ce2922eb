#include "core/nn/distributed.h"

#include <algorithm>
#include <tuple>

#include "core/autograd/variable.h"
#include "core/nn/layers/layers.h"
#include "core/tensor/grad_mode.h"

namespace tensord::nn {
namespace {

std::vector<distributed::NamedParameter> named(const std::vector<NamedTensor>& tensors, bool with_gradient) {
  std::vector<distributed::NamedParameter> named;
  for (const auto& [name, tensor] : tensors) {
    if (!with_gradient || autograd::requires_grad(tensor)) named.push_back({name, tensor});
  }
  return named;
}

// The parameters that the caller names as sparse, and the tables of layers with sparse gradients.
distributed::ReducerOptions with_tables(const Module& module, distributed::ReducerOptions options) {
  for (const auto& [name, part] : module.named_modules()) {
    const auto* const table = dynamic_cast<const Embedding*>(part);
    if (!table || !table->has_sparse_gradient() || !autograd::requires_grad(table->weight)) continue;
    const std::string weight = name.empty() ? "weight" : name + ".weight";
    if (std::find(options.sparse.begin(), options.sparse.end(), weight) == options.sparse.end()) {
      options.sparse.push_back(weight);
    }
  }
  return options;
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(std::shared_ptr<Module> module, distributed::ProcessGroup& group,
                                                 DistributedOptions options)
    : Module("DistributedDataParallel"),
      module_(register_module("module", std::move(module))),
      options_(std::move(options)),
      reducer_(group, named(module_->named_parameters(), true), named(module_->named_buffers(), false),
               with_tables(*module_, options_.reducer)) {
  // Parameters that do not require gradients must be equal on all ranks too.
  for (const auto& [name, tensor] : module_->named_parameters()) {
    if (!autograd::requires_grad(tensor)) group.broadcast(tensor, 0)->wait();
  }
}

void DistributedDataParallel::check_parameters() const {
  const auto asking = named(module_->named_parameters(), true);
  for (const auto& parameter : asking) {
    if (reducer_.has(parameter.tensor)) continue;
    fail(ErrorCode::kFailedPrecondition, "DistributedDataParallel: ", parameter.name,
         " required no gradient when the module was wrapped; wrap it again");
  }
}

Tensors DistributedDataParallel::forward(const Tensors& inputs) {
  const bool reduces = is_grad_enabled() && is_synchronized_;
  check_parameters();
  int root = 0, divisor = 0;
  if (join_) std::tie(root, divisor) = join_->start_forward(reduces);
  if (gives_buffers()) reducer_.broadcast_buffers(root);
  Tensors outputs = module_->run(inputs);
  is_reduced_ = reduces;
  if (reduces) {
    reducer_.prepare(outputs, divisor);
  } else if (is_grad_enabled()) {
    reducer_.skip();
  }
  return outputs;
}

// --- uneven inputs

namespace {

// The fields that ranks exchange before each forward, and after their last input.
enum Say { kGoesOn, kReduces, kGivesBuffers, kSays };

}  // namespace

DistributedDataParallel::Join::Join(DistributedDataParallel& model, Options options)
    : model_(model), options_(options) {
  check(!model.join_, "DistributedDataParallel: a join is there already");
  model_.join_ = this;
}
DistributedDataParallel::Join::~Join() { model_.join_ = nullptr; }

// Returns one row for each rank, in rank order.
Tensor DistributedDataParallel::Join::exchange(bool goes_on, bool reduces) {
  const Tensor own = Tensor::empty(Dims{kSays}, DType::kInt64);
  own.data<int64_t>()[kGoesOn] = goes_on;
  own.data<int64_t>()[kReduces] = reduces;
  own.data<int64_t>()[kGivesBuffers] = model_.gives_buffers();
  distributed::ProcessGroup& group = model_.reducer_.group();
  const Tensor all = Tensor::empty(Dims{group.size(), kSays}, DType::kInt64);
  group.all_gather_into_tensor(all, own)->wait();
  return all;
}

DistributedDataParallel::Join::Round DistributedDataParallel::Join::round_of(const Tensor& all) const {
  Round round;
  for (int rank = 0; rank < all.size(0); ++rank) {
    const int64_t* const says = all.data<int64_t>() + int64_t{rank} * kSays;
    if (!says[kGoesOn]) continue;
    check(round.active == 0 ||
              (round.reduces == (says[kReduces] != 0) && round.gives_buffers == (says[kGivesBuffers] != 0)),
          "DistributedDataParallel: ranks differ in whether this pass is synchronized: rank ", round.root, " and rank ",
          rank);
    ++round.active;
    round.root = rank;
    round.reduces = says[kReduces] != 0;
    round.gives_buffers = says[kGivesBuffers] != 0;
  }
  return round;
}

int DistributedDataParallel::Join::divisor_of(const Round& round) const {
  return options_.divides_by_all ? model_.reducer_.group().size() : round.active;
}

std::pair<int, int> DistributedDataParallel::Join::start_forward(bool reduces) {
  const Round round = round_of(exchange(true, reduces));
  if (options_.throws_on_early_end && round.active < model_.reducer_.group().size()) {
    fail(ErrorCode::kFailedPrecondition,
         "Detected at least one rank that exhausted inputs. Throwing across all ranks.");
  }
  return {round.root, divisor_of(round)};
}

void DistributedDataParallel::Join::finish() {
  distributed::Reducer& reducer = model_.reducer_;
  bool is_last = true;
  for (;; is_last = false) {
    const Round round = round_of(exchange(false, false));
    if (round.active == 0) break;
    if (options_.throws_on_early_end) {
      fail(ErrorCode::kFailedPrecondition, "Rank ", reducer.group().rank(), " exhausted all inputs.");
    }
    if (round.gives_buffers) reducer.broadcast_buffers(round.root);
    if (round.reduces) reducer.shadow_pass(divisor_of(round));
  }
  // Ranks that ended earlier have an outdated model.
  const Round last = round_of(exchange(is_last, false));
  reducer.broadcast_parameters(last.root);
  reducer.broadcast_buffers(last.root);
}

}  // namespace tensord::nn
