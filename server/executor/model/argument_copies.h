#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>

#include "core/tensor/device_copy.h"
#include "core/tensor/storage.h"
#include "core/tensor/tensor.h"

namespace tensord::server {

// Copies of arguments that a run made: eagerly, by copy-on-write, or on the model's device.
class Copies {
 public:
  uint64_t made_bytes = 0;
  absl::InlinedVector<Tensor, 4> lent;

  // The only way for tensors to reach a model's device. `is_returned`: the sender expects to see the model's writes in
  // it.
  Tensor send(const Tensor& tensor, Device device, bool is_returned) {
    Tensor sent = send_to(tensor, device);
    if (is_returned && tensor.storage()->is_writable()) sent_.push_back({tensor, sent});
    return sent;
  }
  // After the run.
  void bring_back() const {
    for (const Sent& one : sent_) one.own.copy_from(one.sent);
  }
  // The bytes that the model's writes cost.
  uint64_t size_bytes() const {
    uint64_t bytes = made_bytes;
    for (const Tensor& tensor : lent) {
      if (tensor.storage()->was_copied()) bytes += tensor.storage()->size_bytes();
    }
    return bytes;
  }

 private:
  struct Sent {
    Tensor own, sent;
  };
  absl::InlinedVector<Sent, 4> sent_;
};

}  // namespace tensord::server
