#include "core/autograd/checkpoint.h"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/base/mutex.h"
#include "core/ops/generator.h"
#include "core/tensor/grad_mode.h"

namespace tensord::autograd {
namespace {

// What must be as it was for the same numbers to come out.
class SameNumbers {
 public:
  explicit SameNumbers(bool keeps_random_numbers)
      : numerics_(execution_context().numerics),
        autocast_(execution_context().autocast),
        has_autocast_(execution_context().included_keys.has(Functionality::kAutocast)) {
    if (!keeps_random_numbers) return;
    ops::Generator& generator = ops::current_generator();
    const MutexLock lock = generator.lock();
    only_for_ = generator.only_for();
    numbers_ = generator.saved();
  }

  template <class Body>
  void run(const Body& body) const {
    const ContextPart<&ExecutionContext::numerics> numerics(numerics_);
    const ContextPart<&ExecutionContext::autocast> autocast(autocast_);
    const DispatchKeySet included = execution_context().included_keys - Functionality::kAutocast;
    const ContextPart<&ExecutionContext::included_keys> keys(has_autocast_ ? included | Functionality::kAutocast
                                                                           : included);
    const EnableGradGuard grad;
    if (!numbers_) return body();
    // One of its own: what draws outside does not notice.
    ops::Generator generator(0, only_for_);
    generator.restore(*numbers_);
    const ops::GeneratorGuard guard(generator);
    body();
  }

 private:
  const Numerics numerics_;
  const AutocastState autocast_;
  const bool has_autocast_;
  std::optional<DeviceKind> only_for_;
  std::optional<ops::Generator::Saved> numbers_;
};

// What a scope recorded: how many tensors were saved, and in which version their memory was.
class CheckpointRegion {
 public:
  CheckpointRegion(std::function<void()> again, bool keeps_random_numbers)
      : again_(std::move(again)), same_(keeps_random_numbers) {}

  // The number by which take() knows the tensor.
  size_t add(const Tensor& tensor) {
    const MutexLock lock(mutex_);
    versions_.push_back(tensor.version());
    return versions_.size() - 1;
  }

  Tensor take(size_t index) {
    if (computing_.load() == std::this_thread::get_id())
      fail(ErrorCode::kFailedPrecondition, "checkpoint: the function goes back through what it is computing again");
    const MutexLock lock(mutex_);
    if (index >= computed_.size() || !computed_[index].defined()) compute();
    return std::exchange(computed_[index], Tensor());
  }

 private:
  void compute() TENSORD_REQUIRES(mutex_) {
    std::vector<Tensor> computed;
    std::vector<uint32_t> versions;
    computing_ = std::this_thread::get_id();
    const auto done = std::shared_ptr<void>(nullptr, [this](void*) { computing_ = std::thread::id(); });
    {
      const SavedTensorHooksScope hooks({[&](const Tensor& tensor) -> std::any {
                                           computed.push_back(tensor);
                                           versions.push_back(tensor.version());
                                           return tensor;
                                         },
                                         [](const std::any& tensor) { return std::any_cast<Tensor>(tensor); }});
      same_.run(again_);
    }
    if (computed.size() != versions_.size()) {
      fail(ErrorCode::kFailedPrecondition, "checkpoint: ", computed.size(),
           " tensors were saved when the function ran ", "again, but ", versions_.size(),
           " at first; it must do the same each time");
    }
    for (size_t i = 0; i < versions.size(); ++i) {
      check_version(computed[i], versions[i], versions_[i]);           // written since the first run
      check_version(computed[i], computed[i].version(), versions[i]);  // written by the function after it was saved
    }
    computed_ = std::move(computed);
  }

  static void check_version(const Tensor& tensor, uint32_t version, uint32_t expected) {
    if (version == expected) return;
    fail(ErrorCode::kFailedPrecondition, "checkpoint: one of the variables needed for gradient computation has been ",
         "modified by an inplace operation: [", describe(tensor), "] is at version ", version, "; expected version ",
         expected, " instead");
  }

  const std::function<void()> again_;
  const SameNumbers same_;
  std::atomic<std::thread::id> computing_;  // the thread that runs again_, with the lock
  Mutex mutex_;
  std::vector<uint32_t> versions_ TENSORD_GUARDED_BY(mutex_);
  std::vector<Tensor> computed_ TENSORD_GUARDED_BY(mutex_);  // undefined: given out
};

}  // namespace

CheckpointScope::CheckpointScope(std::function<void()> again, bool keeps_random_numbers) {
  if (!is_grad_enabled()) return;
  const auto region = std::make_shared<CheckpointRegion>(std::move(again), keeps_random_numbers);
  hooks_ = std::make_unique<SavedTensorHooksScope>(
      SavedTensorHooks{[region](const Tensor& tensor) -> std::any { return region->add(tensor); },
                       [region](const std::any& index) { return region->take(std::any_cast<size_t>(index)); }});
}

}  // namespace tensord::autograd
