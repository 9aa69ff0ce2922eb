#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/distributed/group/process_group.h"
#include "core/ops/op.h"

namespace tensord::server {

// Synchronizes a job's batch norm statistics over all ranks. They use process groups of their own, so that their order
// does not depend on that of the gradients; ranks without rows in a batch take no part. Not thread-safe.
class StatisticsGroups {
 public:
  // The group must outlive it.
  explicit StatisticsGroups(distributed::ProcessGroup& group) : group_(group) {}

  // Operators that replace the model's batch norms; they refer to this object.
  std::vector<std::shared_ptr<const ops::Op>> operator_overrides() const;

  // While it lives, batch norms in training are synchronized over the ranks with rows in a batch of that size. All
  // ranks create one for each pass, with or without rows.
  class Pass {
   public:
    Pass(StatisticsGroups& groups, int64_t all_rows);
    ~Pass() { groups_.current_ = nullptr; }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    StatisticsGroups& groups_;
  };

 private:
  distributed::ProcessGroup& group_;
  std::map<int, std::unique_ptr<distributed::ProcessGroup>> groups_;  // by the number of ranks with rows
  distributed::ProcessGroup* current_ = nullptr;
};

}  // namespace tensord::server
