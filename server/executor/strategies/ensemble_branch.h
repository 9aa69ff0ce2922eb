#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "server/executor/strategies/ensemble_run.h"

namespace tensord::server {

// Tensors at one point of the way. All of a run of models with one answer each; of a decoupled step, one for each
// answer.
struct EnsembleRun::Branch {
  Branch* parent = nullptr;
  std::vector<InferTensor> tensors;  // by number
  std::vector<bool> is_there;
  std::vector<size_t> uses;  // of each tensor: by steps that have not started, and by the answer
  std::vector<bool> is_started;
  size_t running = 0;
  bool is_queued = false;  // in changed_
  bool is_done = false;    // all steps have ended, and those below it
  ParameterMap parameters;
  // Below a decoupled step:
  bool is_forked = false, is_fork_over = false;
  std::deque<std::unique_ptr<Branch>> children;  // until their answers went out
  std::deque<Branch*> parked;                    // of them, not started
  size_t active = 0;                             // of them, started and not done
};

}  // namespace tensord::server
