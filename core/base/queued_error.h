#pragma once

#include "core/base/error.h"

namespace tensord {

// What work found that was queued before: a kernel's error, seen when somebody waits for the device. The message names
// the operator that queued it, so the calls that it passes through add neither their names nor their places.
class QueuedError final : public Error {
 public:
  using Error::Error;
};

}  // namespace tensord
