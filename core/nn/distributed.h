#pragma once

#include <memory>
#include <utility>

#include "core/distributed/ddp/reducer.h"
#include "core/nn/module.h"

namespace tensord::nn {

struct DistributedOptions {
  distributed::ReducerOptions reducer = {};
  bool broadcast_buffers = true;  // from rank 0 to all ranks, before each forward that follows a reduced one
};

// A module that several processes train, each on its own data: torch.nn.parallel.DistributedDataParallel. After a
// backward pass every rank has the mean of all ranks' gradients (distributed::Reducer). All ranks start from rank 0's
// parameters and buffers. Names in the state dict are prefixed with "module.". Thread-safety: as Module; the group must
// outlive it.
class DistributedDataParallel final : public Module {
 public:
  // All ranks call it. Throws Error on all of them if their modules differ.
  DistributedDataParallel(std::shared_ptr<Module> module, distributed::ProcessGroup& group,
                          DistributedOptions options = {});

  // Throws Error{kFailedPrecondition} if a parameter requires a gradient now but did not at construction: its gradient
  // would not be reduced.
  Tensors forward(const Tensors& inputs) override;

  // While one exists, passes accumulate this rank's gradients only. The first pass after it reduces the accumulated
  // gradients.
  class NoSync {
   public:
    explicit NoSync(DistributedDataParallel& model) : model_(model), before_(model.is_synchronized_) {
      model.is_synchronized_ = false;
    }
    ~NoSync() { model_.is_synchronized_ = before_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DistributedDataParallel& model_;
    const bool before_;
  };

  // For ranks with fewer batches than others; all ranks create one around their loops. Each forward tells the others
  // that this rank continues. finish(), called after the loop, joins the remaining passes of the other ranks, and then
  // gives all ranks the model of the ranks that ended last.
  class Join {
   public:
    struct Options {
      // Divide gradients by the number of all ranks, not only of those that still have inputs.
      bool divides_by_all = true;
      // All ranks throw an Error when the first rank runs out of inputs.
      bool throws_on_early_end = false;
    };
    explicit Join(DistributedDataParallel& model) : Join(model, Options()) {}
    Join(DistributedDataParallel& model, Options options);
    ~Join();
    Join(const Join&) = delete;
    Join& operator=(const Join&) = delete;

    void finish();

   private:
    friend class DistributedDataParallel;
    struct Round {
      int active = 0;  // ranks that continue
      int root = 0;    // the last of them
      bool reduces = false, gives_buffers = false;
    };
    Tensor exchange(bool goes_on, bool reduces);
    Round round_of(const Tensor& all) const;
    int divisor_of(const Round& round) const;
    std::pair<int, int> start_forward(bool reduces);  // the rank whose buffers are broadcast, and the divisor

    DistributedDataParallel& model_;
    const Options options_;
  };

  // See distributed::Reducer.
  void register_comm_hook(distributed::CommHook hook) { reducer_.register_hook(std::move(hook)); }

  Module& module() { return *module_; }
  const distributed::Reducer& reducer() const { return reducer_; }

 private:
  void check_parameters() const;
  bool gives_buffers() const { return options_.broadcast_buffers && is_reduced_; }

  const std::shared_ptr<Module> module_;
  const DistributedOptions options_;
  distributed::Reducer reducer_;
  Join* join_ = nullptr;
  bool is_synchronized_ = true;
  bool is_reduced_ = true;  // the previous forward is followed by a reduced pass, or there was none
};

}  // namespace tensord::nn
