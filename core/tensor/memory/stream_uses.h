#pragma once

#include <vector>

#include "core/base/mutex.h"

namespace tensord {

class DeviceStream;

// The streams, other than its own, that have work on a block of device memory. The block is reused after their work is
// done. Thread-safe.
class StreamUses {
 public:
  // `own` is the stream whose order the block follows anyway.
  explicit StreamUses(const DeviceStream& own) : own_(&own) {}
  void note(DeviceStream& stream);
  // Returns the streams noted so far and clears them.
  std::vector<DeviceStream*> take();

 private:
  const DeviceStream* const own_;
  Mutex mutex_;
  std::vector<DeviceStream*> others_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord
