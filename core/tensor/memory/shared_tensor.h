#pragma once

#include <cstdint>
#include <memory>

#include "core/base/file_descriptor.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

namespace tensord {

// A tensor as another process of this machine can open it: the descriptor of its memory, and where it lies there.
struct SharedTensor {
  std::shared_ptr<const FileDescriptor> file;
  uint64_t file_bytes = 0;  // of the memory
  Dims sizes, strides;      // strides in elements
  int64_t offset = 0;       // in elements, from the beginning of the memory
  DType dtype = DType::kFloat32;
};

// Whether all of the tensor's memory is shared with other processes, or could be: what share_memory_ did, and what
// open_shared gives. Throws Error{kInvalidArgument} of an undefined tensor.
bool is_shared(const Tensor& tensor);

// Moves the tensor's memory, all of its storage, to memory that can be shared; nothing where it lies there already. The
// same tensor, for all its handles and for autograd; raw addresses of its elements are others afterwards, so no other
// thread uses it meanwhile. Memory that an array of a program lies over is left to that array.
// Throws Error{kFailedPrecondition} when others hold the memory too, who would stay behind: views, and arrays or
// tensors of other libraries over it; Error{kUnimplemented} for memory of a device; kInvalidArgument when there is no
// memory.
void share_memory_(const Tensor& tensor);

// What another process needs to open the tensor, whose memory is moved by share_memory_ when that was not done yet.
// What one process writes there the others see; their order is theirs to see to. Without gradient and history.
SharedTensor share(const Tensor& tensor);

// A tensor over memory that another process sent. All that it says is checked, so it may be a stranger: Error
// {kInvalidArgument} names what is wrong. But such a peer can go on to write into the memory while it is read here:
// where it is not trusted, clone() the tensor before anything depends on its values. Not writable where the peer sees
// to it.
Tensor open_shared(const SharedTensor& shared);

// Sends it over a Unix socket (stream or seqpacket) in one message of fixed size, the descriptor beside it by
// SCM_RIGHTS; the peer gets a descriptor of its own. Nothing else may be read or written there meanwhile. Throws
// Error{kDeadlineExceeded} when the peer takes longer than the timeout, kUnavailable when it is gone.
void send_shared(int socket, const SharedTensor& shared, int timeout_ms = 60'000);
// Receives one; open_shared checks what is in it. Throws as send_shared does, and Error{kDataLoss} for what is no such
// message; descriptors that came along are closed.
SharedTensor receive_shared(int socket, int timeout_ms = 60'000);

}  // namespace tensord
