#include <chrono>
#include <vector>

#include "core/base/error.h"
#include "core/distributed/value_bytes.h"
#include "core/ops/run.h"
#include "ops/view.h"
#include "server/training/data/batch_source.h"
#include "server/training/value_dict.h"

namespace tensord::server {
namespace {

using ops::Value;

// While no batch arrives, rank 0 broadcasts this often, so that the other ranks do not reach the group's timeout.
constexpr auto kSayInterval = std::chrono::minutes(10);

Tensor own_rows(const Tensor& rows, int rank, int size) {
  return ops::slice(rows, int64_t{0}, int64_t{rank}, std::nullopt, int64_t{size});
}

class RankStreamSource final : public BatchSource {
 public:
  RankStreamSource(distributed::ProcessGroup& group, std::unique_ptr<BatchSource> whole)
      : group_(group), whole_(std::move(whole)) {
    check_internal((group_.rank() == 0) == (whole_ != nullptr), "rank 0 has the stream");
  }

  Next next(std::vector<Tensor>& batch, const std::function<bool()>& is_interrupted) override {
    for (;;) {
      std::vector<std::string> parts;
      if (whole_) parts = read(is_interrupted);
      const ValueDict told(distributed::value_of_bytes(group_.scatter_bytes(parts, 0)));
      if (told.at("is_nothing").to_bool()) continue;
      const auto found = static_cast<Next>(told.at("next").to_int());
      if (found != Next::kBatch) return found;
      rows_ = told.at("rows").to_int();
      batch.clear();
      for (const Value& column : told.at("columns").to_list()->items) batch.push_back(column.to_tensor());
      ++batches_;
      return found;
    }
  }
  int64_t rows(std::span<const Tensor>) const override { return rows_; }
  int64_t batches() const override { return batches_; }

  // The state is the same on all ranks and for any number of ranks.
  Value state_dict() const override {
    ValueDict dict;
    dict.set("batches", batches_);
    return dict.value();
  }
  void load_state_dict(const Value& state) override {
    batches_ = ValueDict(state).at("batches").to_int();
    if (whole_) whole_->load_state_dict(state);
  }

 private:
  // Builds the message for each rank.
  std::vector<std::string> read(const std::function<bool()>& is_interrupted) {
    std::vector<Tensor> batch;
    const auto start = std::chrono::steady_clock::now();
    bool is_nothing = false;
    const Next found = whole_->next(batch, [&] {
      if (is_interrupted()) return true;
      is_nothing = std::chrono::steady_clock::now() - start > kSayInterval;
      return is_nothing;
    });
    std::vector<std::string> parts;
    for (int rank = 0; rank < group_.size(); ++rank) {
      ValueDict told;
      told.set("is_nothing", is_nothing && found == Next::kInterrupted);
      told.set("next", static_cast<int64_t>(found));
      told.set("rows", whole_->rows(batch));
      std::vector<Value> columns;
      // A rank without rows gets no tensors.
      const bool has_rows = !batch.empty() && batch.front().size(0) > rank;
      for (size_t i = 0; has_rows && i < batch.size(); ++i) {
        columns.emplace_back(own_rows(batch[i], rank, group_.size()));
      }
      told.set("columns", Value(ops::make_list(ops::any_type(), std::move(columns))));
      parts.push_back(distributed::bytes_of_value(told.value()));
    }
    return parts;
  }

  distributed::ProcessGroup& group_;
  const std::unique_ptr<BatchSource> whole_;  // on rank 0 only
  int64_t rows_ = 0;                          // in the last batch
  int64_t batches_ = 0;
};

}  // namespace

std::unique_ptr<BatchSource> make_rank_stream_source(distributed::ProcessGroup& group,
                                                     std::unique_ptr<BatchSource> whole) {
  return std::make_unique<RankStreamSource>(group, std::move(whole));
}

}  // namespace tensord::server
