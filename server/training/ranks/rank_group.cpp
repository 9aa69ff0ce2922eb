#include "server/training/ranks/rank_group.h"

#include "core/autograd/engine.h"
#include "core/base/error.h"
#include "core/distributed/value_bytes.h"
#include "core/ops/run.h"
#include "core/ops/sparse.h"
#include "ops/pointwise.h"

namespace tensord::server {
namespace {

std::vector<distributed::NamedParameter> named(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::vector<distributed::NamedParameter> out;
  for (const auto& [name, tensor] : tensors) out.push_back({name, tensor});
  return out;
}

// A script may use different parameters in each step.
distributed::ReducerOptions reducer_options(const DistributionSpec& spec, distributed::PowerSgd* power_sgd,
                                            std::vector<std::string> sparse) {
  distributed::ReducerOptions options;
  // Sparse gradients are detected during a pass, in which no parameter may change.
  options.init_sync = sparse.empty();
  options.sparse = std::move(sparse);
  options.find_unused_parameters = true;
  if (spec.compression == "fp16") options.hook = distributed::fp16_compress_hook();
  if (spec.compression == "bf16") options.hook = distributed::bf16_compress_hook();
  if (power_sgd != nullptr) options.hook = power_sgd->hook();
  return options;
}

std::unique_ptr<distributed::PowerSgd> make_power_sgd(const DistributionSpec& spec, int rank, int size,
                                                      const ops::Value& state) {
  if (spec.compression != "powersgd") return nullptr;
  auto made = std::make_unique<distributed::PowerSgd>(distributed::PowerSgdOptions{
      .rank = spec.compression_rank, .start_step = spec.compression_start_step.value_or(1000)});
  if (state.is_none()) return made;
  const auto& ranks = state.to_list()->items;
  const bool is_own = ranks.size() == static_cast<size_t>(size);
  check(!ranks.empty(), "the state of the compression has no rank");
  made->load_state_dict(ranks[is_own ? static_cast<size_t>(rank) : 0], is_own);
  return made;
}

}  // namespace

RankGroup::RankGroup(distributed::ProcessGroup& group, const std::vector<std::pair<std::string, Tensor>>& parameters,
                     int64_t step, const DistributionSpec& spec, const ops::Value& compression, bool looks_for_sparse)
    : group_(group),
      spec_(spec),
      parameters_(parameters),
      looks_for_sparse_(looks_for_sparse),
      power_sgd_(make_power_sgd(spec, group.rank(), group.size(), compression)),
      reducer_(make_reducer({})) {
  const std::string text = std::to_string(step);
  for (const std::string& other : group.all_gather_bytes(text)) {
    check_internal(other == text, "ranks begin with other steps: ", text, " and ", other);
  }
}

std::unique_ptr<distributed::Reducer> RankGroup::make_reducer(std::vector<std::string> sparse) {
  return std::make_unique<distributed::Reducer>(group_, named(parameters_), std::vector<distributed::NamedParameter>(),
                                                reducer_options(spec_, power_sgd_.get(), std::move(sparse)));
}

// Detects sparse gradients on all ranks before any is reduced. Takes an extra pass, only for models with embedding
// tables.
void RankGroup::find_sparse_gradients(const Tensor& loss) {
  looks_for_sparse_ = false;
  std::string own;
  if (loss.defined()) {
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : parameters_) tensors.push_back(tensor);
    const std::vector<Tensor> found =
        autograd::grad(std::span(&loss, 1), tensors, {}, {.retain_graph = true}, /*allow_unused=*/true);
    for (size_t i = 0; i < found.size(); ++i) own += found[i].defined() && ops::as_sparse(found[i]) ? '1' : '0';
  }
  std::vector<bool> is_sparse(parameters_.size(), false);
  for (const std::string& all : group_.all_gather_bytes(own)) {
    for (size_t i = 0; i < all.size(); ++i) is_sparse[i] = is_sparse[i] || all[i] == '1';
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (is_sparse[i]) names.push_back(parameters_[i].first);
  }
  if (names.empty()) return;
  reducer_.reset();  // its hooks must be removed first
  reducer_ = make_reducer(std::move(names));
}

void RankGroup::share_buffers(const jit::Module& module) {
  if (size() == 1) return;
  const auto start = std::chrono::steady_clock::now();
  std::vector<distributed::WorkPtr> works;
  for (const auto& [name, tensor] : module.named_buffers()) works.push_back(group_.broadcast(tensor, 0));
  for (const auto& work : works) work->wait();
  waited_ += std::chrono::steady_clock::now() - start;
}

void RankGroup::backward(const Tensor& loss, int64_t rows, int64_t all_rows) {
  if (looks_for_sparse_) find_sparse_gradients(loss);
  if (!loss.defined()) {
    reducer_->shadow_pass(0, /*takes_result=*/true);
    return;
  }
  // The reducer averages over ranks, but ranks may have different numbers of rows.
  const double weight = static_cast<double>(rows * size()) / static_cast<double>(all_rows);
  const Tensor weighted = weight == 1 ? loss : ops::mul(loss, weight);
  reducer_->prepare(std::span(&weighted, 1));
  autograd::backward(weighted);
}

ops::Value RankGroup::gather_compression() {
  if (!power_sgd_) return {};
  std::vector<ops::Value> states;
  for (const std::string& bytes : group_.gather_bytes(distributed::bytes_of_value(power_sgd_->state_dict()), 0)) {
    states.push_back(distributed::value_of_bytes(bytes));
  }
  if (!is_first()) return {};
  return ops::Value(ops::make_list(ops::any_type(), std::move(states)));
}

void RankGroup::tell(double loss, int64_t rows, int64_t all_rows, JobRequest request, bool checkpoint_is_due) {
  told_ = Tensor::empty(Dims{3}, DType::kFloat64);
  told_.data<double>()[0] = rows == 0 ? 0 : loss * static_cast<double>(rows) / static_cast<double>(all_rows);
  told_.data<double>()[1] = is_first() ? static_cast<double>(request) : 0;
  told_.data<double>()[2] = static_cast<double>(is_first() && checkpoint_is_due);
  telling_ = group_.all_reduce(told_);
}

RankGroup::Agreed RankGroup::agreed() {
  const auto start = std::chrono::steady_clock::now();
  telling_->wait();
  waited_ += std::chrono::steady_clock::now() - start;
  const double* const told = told_.data<double>();
  return {told[0], static_cast<JobRequest>(told[1]), told[2] != 0};
}

bool RankGroup::all_of(bool is_so) {
  const auto start = std::chrono::steady_clock::now();
  const Tensor others = Tensor::scalar(is_so ? 0.0 : 1.0, DType::kFloat64);
  group_.all_reduce(others)->wait();
  waited_ += std::chrono::steady_clock::now() - start;
  return others.item_double() == 0;
}

std::string RankGroup::shared(const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  std::string out = group_.broadcast_bytes(text, 0);
  waited_ += std::chrono::steady_clock::now() - start;
  return out;
}

JobRequest RankGroup::shared_request(JobRequest request) {
  return static_cast<JobRequest>(std::stoi(shared(std::to_string(static_cast<int>(request)))));
}

}  // namespace tensord::server
