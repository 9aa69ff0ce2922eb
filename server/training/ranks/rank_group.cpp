#include "server/training/ranks/rank_group.h"

#include "core/autograd/engine.h"
#include "core/base/error.h"
#include "core/ops/run.h"

namespace tensord::server {
namespace {

std::vector<distributed::NamedParameter> named(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::vector<distributed::NamedParameter> out;
  for (const auto& [name, tensor] : tensors) out.push_back({name, tensor});
  return out;
}

// A script may use other parameters in each step, and some in none.
distributed::ReducerOptions reducer_options() {
  distributed::ReducerOptions options;
  options.find_unused_parameters = true;
  return options;
}

}  // namespace

RankGroup::RankGroup(distributed::ProcessGroup& group, const std::vector<std::pair<std::string, Tensor>>& parameters,
                     int64_t step)
    : group_(group), reducer_(group, named(parameters), {}, reducer_options()) {
  const std::string text = std::to_string(step);
  for (const std::string& other : group.all_gather_bytes(text)) {
    check_internal(other == text, "ranks begin with other steps: ", text, " and ", other);
  }
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
  if (!loss.defined()) {
    reducer_.shadow_pass(0, /*takes_result=*/true);
    return;
  }
  // The reducer gives the mean over ranks, and ranks may have more or fewer rows.
  const double weight = static_cast<double>(rows * size()) / static_cast<double>(all_rows);
  const Tensor weighted = weight == 1 ? loss : ops::call("aten::mul.Scalar", loss, weight);
  reducer_.prepare(std::span(&weighted, 1));
  autograd::backward(weighted);
}

void RankGroup::tell(double loss, int64_t rows, int64_t all_rows, JobRequest request) {
  told_ = Tensor::empty(Dims{2}, DType::kFloat64);
  told_.data<double>()[0] = rows == 0 ? 0 : loss * static_cast<double>(rows) / static_cast<double>(all_rows);
  told_.data<double>()[1] = is_first() ? static_cast<double>(request) : 0;
  telling_ = group_.all_reduce(told_);
}

RankGroup::Agreed RankGroup::agreed() {
  const auto start = std::chrono::steady_clock::now();
  telling_->wait();
  waited_ += std::chrono::steady_clock::now() - start;
  return {told_.data<double>()[0], static_cast<JobRequest>(told_.data<double>()[1])};
}

std::string RankGroup::shared(const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  std::string out = group_.broadcast_bytes(text, 0);
  waited_ += std::chrono::steady_clock::now() - start;
  return out;
}

}  // namespace tensord::server
