#include "server/training/ranks/statistics_groups.h"

#include <algorithm>
#include <numeric>

#include "core/nn/layers/sync_batch_norm.h"

namespace tensord::server {

std::vector<std::shared_ptr<const ops::Op>> StatisticsGroups::operator_overrides() const {
  const auto current = [this] { return current_; };
  return {nn::batch_norm_over_ranks("aten::batch_norm", current),
          nn::batch_norm_over_ranks("aten::native_batch_norm", current)};
}

// If there are fewer rows than ranks, the first ranks have them (data/rank_source).
StatisticsGroups::Pass::Pass(StatisticsGroups& groups, int64_t all_rows) : groups_(groups) {
  const int count = static_cast<int>(std::min<int64_t>(groups.group_.size(), all_rows));
  const auto [found, is_new] = groups.groups_.try_emplace(count);
  if (is_new) {
    std::vector<int> ranks(static_cast<size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    found->second = groups.group_.new_group(ranks);
  }
  groups.current_ = found->second.get();
}

}  // namespace tensord::server
