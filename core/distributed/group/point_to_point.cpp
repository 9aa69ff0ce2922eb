// send and recv. A message is a header, which describes the rest, and its bytes in a slot of their own: so a recv that
// does not match is an error, and messages of several threads do not mix.
#include <cstring>
#include <numeric>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/distributed/group/buffers.h"
#include "core/distributed/group/item.h"

namespace tensord::distributed {
namespace {

struct Header {
  uint64_t count;   // of elements
  uint64_t number;  // sequence number among the sender's messages to this receiver
  int64_t dtype;
};

// Slots of headers and of bytes. They do not collide with the slots that backends use themselves, whose first byte is
// below 0x80.
uint64_t header_slot(uint32_t tag) { return uint64_t{0x80} << 56 | uint64_t{tag} << 16; }
uint64_t bytes_slot(uint64_t number) { return uint64_t{0x81} << 56 | (number & 0xffffffffu) << 16; }

std::span<const std::byte> bytes_of(const Header& header) { return std::as_bytes(std::span(&header, 1)); }

}  // namespace

WorkPtr ProcessGroup::start_transfer(std::string name, Milliseconds timeout, std::function<int(SteadyTime)> move) {
  auto work = std::make_shared<Work>(0, std::move(name));
  if (const auto failed = failure()) {
    work->finish(*failed);
    return work;
  }
  const SteadyTime deadline = std::chrono::steady_clock::now() + chosen(timeout);
  transfers_->post([this, work, deadline, move = std::move(move), context = ExecutionContext::detached()] {
    const ExecutionScope scope(context);
    work->start();
    std::optional<Error> error;
    try {
      return work->finish(std::nullopt, move(deadline));
    } catch (const Error& thrown) {
      error = thrown;
    } catch (const std::exception& thrown) {
      error = Error(ErrorCode::kInternal, thrown.what());
    }
    bool is_closing;
    {
      const MutexLock lock(mutex_);
      is_closing = is_closing_;
    }
    if (is_closing) return work->finish(Error(ErrorCode::kCancelled, concat(work->name(), ": the group was closed")));
    work->finish(end_with(Error(error->code(), concat("rank ", rank_, ", ", work->name(), ": ", error->what()))));
  });
  return work;
}

// A transfer that the backend could not even start: its Work fails with the group's error, like all others.
WorkPtr ProcessGroup::failed_transfer(std::string name, const Error& error) {
  auto work = std::make_shared<Work>(0, std::move(name));
  work->finish(end_with(Error(error.code(), concat("rank ", rank_, ", ", work->name(), ": ", error.what()))));
  return work;
}

WorkPtr ProcessGroup::send(const Tensor& tensor, int destination, uint32_t tag, Milliseconds timeout) {
  check_rank("send", "the destination", destination);
  check(destination != rank_, "send: the destination is this rank itself");
  check_source(*backend_, "send", "tensor", tensor);
  if (backend_->on_device()) return enqueue_messages({{Message::Way::kSend, tensor, destination, tag}}, timeout);
  struct Parts {
    Header header;
    Packed packed;
    std::unique_ptr<Transfer> head, body;
  };
  const auto message = std::make_shared<Parts>(Parts{{}, Packed(tensor), {}, {}});
  message->packed.pack();
  {
    const MutexLock lock(mutex_);
    message->header = {message->packed.count(), ++sent_[static_cast<size_t>(destination)],
                       static_cast<int64_t>(tensor.dtype())};
  }
  // Header and bytes are both in flight before the call returns, so no order of waits can deadlock.
  const auto head = bytes_of(message->header);
  const std::string name = concat("send to rank ", destination, ", ", describe(tensor), ", tag ", tag);
  try {
    if (!failure()) {
      message->head = backend_->start_send(head.data(), head.size(), destination, header_slot(tag));
      message->body = backend_->start_send(message->packed.data(), message->packed.size_bytes(), destination,
                                           bytes_slot(message->header.number));
    }
  } catch (const Error& error) {
    return failed_transfer(name, error);
  }
  return start_transfer(name, timeout, [message](SteadyTime deadline) {
    message->head->wait(deadline);
    message->body->wait(deadline);
    return -1;
  });
}

WorkPtr ProcessGroup::recv(const Tensor& tensor, int source, uint32_t tag, Milliseconds timeout) {
  if (source != kAnyRank) check_rank("recv", "the source", source);
  check(source != rank_, "recv: the source is this rank itself");
  check_target(*backend_, "recv", "tensor", tensor);
  if (backend_->on_device()) {
    if (source == kAnyRank) {
      fail(ErrorCode::kUnimplemented, "recv: ", backend_->name(), " cannot receive from any rank; name the source");
    }
    return enqueue_messages({{Message::Way::kRecv, tensor, source, tag}}, timeout);
  }
  std::vector<int> peers;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && (source == kAnyRank || source == rank)) peers.push_back(rank);
  }
  check(!peers.empty(), "recv: a group of one rank");
  const auto header = std::make_shared<Header>();
  std::shared_ptr<Transfer> head;
  const std::string from = source == kAnyRank ? "any rank" : concat("rank ", source);
  const std::string name = concat("recv from ", from, ", ", describe(tensor), ", tag ", tag);
  try {
    if (!failure())
      head = backend_->start_recv(reinterpret_cast<std::byte*>(header.get()), sizeof(Header), peers, header_slot(tag));
  } catch (const Error& error) {
    return failed_transfer(name, error);
  }
  return start_transfer(name, timeout, [=, this](SteadyTime deadline) {
    const int sender = head->wait(deadline);
    const auto dtype = static_cast<DType>(header->dtype);
    check(dtype == tensor.dtype() && header->count == static_cast<uint64_t>(tensor.numel()), "rank ", sender, " sends ",
          header->count, " elements of ", name_of(dtype), ", expected ", tensor.numel(), " of ",
          name_of(tensor.dtype()));
    Packed packed(tensor);
    backend_->start_recv(packed.data(), packed.size_bytes(), std::span(&sender, 1), bytes_slot(header->number))
        ->wait(deadline);
    packed.unpack();
    return sender;
  });
}

std::vector<WorkPtr> ProcessGroup::start_messages(std::vector<Message> messages, Milliseconds timeout) {
  std::vector<WorkPtr> works;
  if (!backend_->on_device()) {
    for (const Message& message : messages) {
      works.push_back(message.way == Message::Way::kSend ? send(message.tensor, message.peer, message.tag, timeout)
                                                         : recv(message.tensor, message.peer, message.tag, timeout));
    }
    return works;
  }
  check(!messages.empty(), "messages: there are none");
  for (const Message& message : messages) {
    const bool is_send = message.way == Message::Way::kSend;
    check_rank("messages", is_send ? "a destination" : "a source", message.peer);
    check(message.peer != rank_, "messages: the other side is this rank itself");
    is_send ? check_source(*backend_, "send", "tensor", message.tensor)
            : check_target(*backend_, "recv", "tensor", message.tensor);
    check(message.tensor.device() == messages.front().tensor.device(), "messages: tensors are on several devices");
  }
  return {enqueue_messages(std::move(messages), timeout)};
}

}  // namespace tensord::distributed
