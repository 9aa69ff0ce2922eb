#pragma once

#include <vector>

#include "core/base/mutex.h"

namespace tensord {

class DeviceStream;

// The streams, beside its own, that were given work on a block of device memory: it is given out again when their work
// is done. Thread-safe.
class StreamUses {
 public:
  // `own`: the stream whose order the block follows anyway.
  explicit StreamUses(const DeviceStream& own) : own_(&own) {}
  void note(DeviceStream& stream);
  // Those noted, and none from now on.
  std::vector<DeviceStream*> take();

 private:
  const DeviceStream* const own_;
  Mutex mutex_;
  std::vector<DeviceStream*> others_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord
