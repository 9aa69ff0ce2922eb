#pragma once

#include <memory>
#include <utility>

#include "core/distributed/ddp/reducer.h"
#include "core/nn/module.h"

namespace tensord::nn {

struct DistributedOptions {
  distributed::ReducerOptions reducer = {};
  bool broadcast_buffers = true;  // rank 0's to all, before each forward that follows a reduced one
};

// A module that several processes train, each with data of its own: torch.nn.parallel.DistributedDataParallel. Backward
// passes give every rank the mean of all ranks' gradients (distributed::Reducer); all ranks start from rank 0's
// parameters and buffers. Its state dict has the module's names behind "module.". Thread-safety: as Module; the group
// must outlive it.
class DistributedDataParallel final : public Module {
 public:
  // All ranks call it. Throws Error on all of them where their modules differ.
  DistributedDataParallel(std::shared_ptr<Module> module, distributed::ProcessGroup& group,
                          DistributedOptions options = {});

  // Throws Error{kFailedPrecondition} where a parameter asks for its gradient now and did not at the start: it would be
  // reduced by nobody.
  Tensors forward(const Tensors& inputs) override;

  // While one lives, passes add to this rank's gradients only; the first one after it reduces all that came together.
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

  // For ranks that have fewer batches than others; all ranks make one, around their loops. Each forward tells the
  // others that this rank goes on. finish(), called behind the loop, takes part in what the others still do, and then
  // gives all ranks the model of those that ended last.
  class Join {
   public:
    struct Options {
      // Gradients are divided by the number of all ranks, or of those that still have inputs.
      bool divides_by_all = true;
      // The first rank without inputs is an Error of all.
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
      int active = 0;  // ranks that go on
      int root = 0;    // the last of them
      bool reduces = false, gives_buffers = false;
    };
    Tensor exchange(bool goes_on, bool reduces);
    Round round_of(const Tensor& all) const;
    int divisor_of(const Round& round) const;
    std::pair<int, int> start_forward(bool reduces);  // whose buffers count, and the divisor

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
  bool is_reduced_ = true;  // the forward before is followed by a pass that reduces, or there was none
};

}  // namespace tensord::nn
