#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/distributed/group/process_group.h"
#include "core/ops/op.h"

namespace tensord::server {

// Lets a job's batch norms count the rows of all ranks. Statistics have groups of their own, beside that of the
// gradients, whose order they do not hang on; ranks without a row in a batch are in none. Not thread-safe.
class StatisticsGroups {
 public:
  // The group must outlive it.
  explicit StatisticsGroups(distributed::ProcessGroup& group) : group_(group) {}

  // What runs in the place of the model's batch norms; they use this object.
  std::vector<std::shared_ptr<const ops::Op>> operator_overrides() const;

  // While one lives, batch norms in training are over the ranks that have rows of a batch of so many. Made by all ranks
  // for each pass, whether they have rows or not.
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
  std::map<int, std::unique_ptr<distributed::ProcessGroup>> groups_;  // by the number of ranks that have rows
  distributed::ProcessGroup* current_ = nullptr;
};

}  // namespace tensord::server
