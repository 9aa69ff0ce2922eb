#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/memory/shared_tensor.h"

// Sends and receives SharedTensor over Unix sockets.
namespace tensord {
namespace {

constexpr size_t kMaxMessageDims = 64;
constexpr std::array<char, 8> kMagic = {'t', 'e', 'n', 's', 'o', 'r', 'd', '1'};

struct Message {
  std::array<char, 8> magic = kMagic;
  uint64_t file_bytes = 0;
  int64_t offset = 0;
  int32_t dtype = 0;
  uint32_t ndim = 0;
  std::array<int64_t, kMaxMessageDims> sizes{}, strides{};
};
static_assert(sizeof(Message) == 32 + 2 * 8 * kMaxMessageDims);

class Deadline {
 public:
  explicit Deadline(int timeout_ms) : end_(Clock::now() + std::chrono::milliseconds(timeout_ms)) {}
  // Waits until the socket is ready.
  void wait(int socket, short events, const char* what) const {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
      pollfd one{socket, events, 0};
      const int ready = poll(&one, 1, static_cast<int>(std::max<int64_t>(left, 0)));
      if (ready > 0) return;
      if (ready == 0) fail(ErrorCode::kDeadlineExceeded, what, ": the peer took too long");
      if (errno != EINTR) fail(ErrorCode::kUnavailable, what, ": ", std::strerror(errno));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end_;
};

// Has room for more descriptors than a valid message has, so that surplus ones are received and closed.
struct Control {
  static constexpr size_t kMax = 8;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMax)> bytes{};
};

void take_descriptors(msghdr& head, std::vector<std::shared_ptr<const FileDescriptor>>& files) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&head); part; part = CMSG_NXTHDR(&head, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      files.push_back(std::make_shared<const FileDescriptor>(file));
    }
  }
}

bool may_try_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

void send_shared(int socket, const SharedTensor& shared, int timeout_ms) {
  check(shared.file != nullptr, "send_shared: there is no descriptor");
  check(shared.sizes.size() <= kMaxMessageDims && shared.sizes.size() == shared.strides.size(),
        "send_shared: ", shared.sizes.size(), " sizes and ", shared.strides.size(), " strides");
  Message message;
  message.file_bytes = shared.file_bytes;
  message.offset = shared.offset;
  message.dtype = static_cast<int32_t>(shared.dtype);
  message.ndim = static_cast<uint32_t>(shared.sizes.size());
  std::copy(shared.sizes.begin(), shared.sizes.end(), message.sizes.begin());
  std::copy(shared.strides.begin(), shared.strides.end(), message.strides.begin());
  const Deadline deadline(timeout_ms);
  auto* const bytes = reinterpret_cast<char*>(&message);
  for (size_t done = 0; done < sizeof(message);) {
    iovec part{bytes + done, sizeof(message) - done};
    msghdr head{};
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    Control control;
    if (done == 0) {  // only with the first byte
      head.msg_control = control.bytes.data();
      head.msg_controllen = CMSG_SPACE(sizeof(int));
      cmsghdr* const rights = CMSG_FIRSTHDR(&head);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      const int file = shared.file->get();
      std::memcpy(CMSG_DATA(rights), &file, sizeof(int));
    }
    deadline.wait(socket, POLLOUT, "send_shared");
    const ssize_t sent = sendmsg(socket, &head, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && !may_try_again()) fail(ErrorCode::kUnavailable, "send_shared: ", std::strerror(errno));
    if (sent > 0) done += static_cast<size_t>(sent);
  }
}

SharedTensor receive_shared(int socket, int timeout_ms) {
  Message message;
  std::vector<std::shared_ptr<const FileDescriptor>> files;
  const Deadline deadline(timeout_ms);
  auto* const bytes = reinterpret_cast<char*>(&message);
  for (size_t done = 0; done < sizeof(message);) {
    iovec part{bytes + done, sizeof(message) - done};
    Control control;
    msghdr head{};
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = control.bytes.data();
    head.msg_controllen = control.bytes.size();
    deadline.wait(socket, POLLIN, "receive_shared");
    const ssize_t got = recvmsg(socket, &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && may_try_again()) continue;
    if (got < 0) fail(ErrorCode::kUnavailable, "receive_shared: ", std::strerror(errno));
    take_descriptors(head, files);
    if (got == 0 && done == 0) fail(ErrorCode::kUnavailable, "receive_shared: the peer is gone");
    if (got == 0 || (head.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || files.size() > 1)
      fail(ErrorCode::kDataLoss, "receive_shared: what came is not a tensor");
    done += static_cast<size_t>(got);
  }
  if (message.magic != kMagic || message.ndim > kMaxMessageDims || files.size() != 1)
    fail(ErrorCode::kDataLoss, "receive_shared: what came is not a tensor");
  SharedTensor out{files[0], message.file_bytes, {}, {}, message.offset, DType::kUInt8};
  if (message.dtype < 0 || message.dtype > 127)
    fail(ErrorCode::kDataLoss, "receive_shared: there is no dtype ", message.dtype);
  out.dtype = static_cast<DType>(message.dtype);
  for (size_t i = 0; i < message.ndim; ++i) {
    out.sizes.push_back(message.sizes[i]);
    out.strides.push_back(message.strides[i]);
  }
  return out;
}

}  // namespace tensord
