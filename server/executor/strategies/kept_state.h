#pragma once

#include <absl/status/status.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/executor/model/sequence_model.h"
#include "server/scheduler/sequence_policy.h"

namespace tensord::server {

// The state of a sequence that the server keeps between requests.
struct KeptState {
  SequenceState state;
  std::shared_ptr<const void> hold;  // charge for the state's memory, if requests determine its size
};

inline KeptState& kept_of(const Sequence& sequence) { return *static_cast<KeptState*>(sequence.data.get()); }

// Bytes of the states whose size requests determine.
inline uint64_t open_bytes(const SequenceModel& model, const SequenceState& states) {
  uint64_t bytes = 0;
  for (size_t k = 0; k < states.size(); ++k) {
    const Dims& dims = model.states()[k].dims;
    if (std::find(dims.begin(), dims.end(), -1) != dims.end()) bytes += states[k].size_bytes();
  }
  return bytes;
}

// The result of one row of a batch.
struct RowResult {
  absl::Status status;
  std::vector<InferTensor> outputs;
};

// Ends the sequences of a batch whose state was lost.
inline void end_lost(const SequenceBatch& batch, SequencePolicy& policy, SequencePolicy::Rejections& rejected) {
  for (const SequenceBatch::Row& row : batch.rows) {
    if (!row.sequence || !row.sequence->is_running || row.sequence->data) continue;
    policy.end(row.sequence, ErrorCode::kResourceExhausted,
               "the sequence has ended: there was no room for the state that an earlier request made", rejected);
  }
}

}  // namespace tensord::server
