#include "core/tensor/memory/stream_uses.h"

#include <algorithm>
#include <utility>

#include "core/base/mutex.h"
#include "core/tensor/storage.h"

namespace tensord {

void StreamUses::note(DeviceStream& stream) {
  if (&stream == own_) return;
  const MutexLock lock(mutex_);
  if (std::find(others_.begin(), others_.end(), &stream) == others_.end()) others_.push_back(&stream);
}

std::vector<DeviceStream*> StreamUses::take() {
  const MutexLock lock(mutex_);
  return std::exchange(others_, {});
}

void StorageImpl::record_stream(DeviceStream& stream) const {
  if (uses_) uses_->note(stream);
}

}  // namespace tensord
