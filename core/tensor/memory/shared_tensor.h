#pragma once

#include <cstdint>
#include <memory>

#include "core/base/file_descriptor.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

namespace tensord {

// A tensor that another process on this machine can open: the descriptor of its memory, and its place there.
struct SharedTensor {
  std::shared_ptr<const FileDescriptor> file;
  uint64_t file_bytes = 0;  // of the memory
  Dims sizes, strides;      // strides are in elements
  int64_t offset = 0;       // in elements, from the start of the memory
  DType dtype = DType::kFloat32;
};

// Whether all of the tensor's memory is shareable with other processes: after share_memory_, or from open_shared.
// Throws Error{kInvalidArgument} for an undefined tensor.
bool is_shared(const Tensor& tensor);

// Moves the tensor's memory, all of its storage, to memory that can be shared; nothing where it lies there already. The
// same tensor, for all its handles and for autograd; raw addresses of its elements are others afterwards, so no other
// thread uses it meanwhile. Memory that an array of a program lies over is left to that array.
// Throws Error{kFailedPrecondition} when others hold the memory too, which would keep the old one: views, and arrays or
// tensors of other libraries over it; Error{kUnimplemented} for memory of a device; kInvalidArgument when there is no
// memory.
void share_memory_(const Tensor& tensor);

// Describes the tensor for another process; share_memory_ moves its memory first if it is not shared yet. Each process
// sees what the others write; the processes have to order their accesses. Gradient and autograd history are not part of
// it.
SharedTensor share(const Tensor& tensor);

// Opens a tensor over memory that another process sent. Every field is checked, so the sender may be untrusted:
// Error{kInvalidArgument} names what is wrong. Such a sender can still write the memory while it is read here: clone()
// the tensor of an untrusted sender before anything depends on its values. The tensor is not writable if the sender
// sealed it.
Tensor open_shared(const SharedTensor& shared);

// Sends it over a Unix socket (stream or seqpacket) in one message of fixed size, with the descriptor as SCM_RIGHTS;
// the peer gets a descriptor of its own. Nothing else may be read from or written to the socket in the meantime. Throws
// Error{kDeadlineExceeded} if the peer takes longer than the timeout, kUnavailable if it is gone.
void send_shared(int socket, const SharedTensor& shared, int timeout_ms = 60'000);
// Receives one; open_shared checks its contents. Throws as send_shared does, and Error{kDataLoss} if the message is not
// of this kind; descriptors that came with it are closed.
SharedTensor receive_shared(int socket, int timeout_ms = 60'000);

}  // namespace tensord
