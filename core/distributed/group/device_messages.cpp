// send and recv on a device. The sender describes the message in the store before it sends the bytes: a recv that does
// not match is an error, and the device never waits for data that will not come.
#include <deque>

#include "core/base/error.h"
#include "core/distributed/group/buffers.h"
#include "core/distributed/group/item.h"

namespace tensord::distributed {
namespace {

constexpr Milliseconds kPiece{50};  // interval between checks whether the group has ended

std::string key_of(int from, int to, uint64_t number) { return concat("message/", from, "/", to, "/", number); }

// "3 of float32, tag 0".
std::string text_of(const ProcessGroup::Message& message) {
  return concat(message.tensor.numel(), " of ", name_of(message.tensor.dtype()), ", tag ", message.tag);
}

}  // namespace

WorkPtr ProcessGroup::enqueue_messages(std::vector<Message> messages, Milliseconds timeout) {
  std::string text;
  for (const Message& message : messages) {
    const char* const way = message.way == Message::Way::kSend ? "send to rank " : "recv from rank ";
    text += concat(text.empty() ? "" : "; ", way, message.peer, ", ", describe(message.tensor), ", tag ", message.tag);
  }
  const Device device = messages.front().tensor.device();
  const int source = messages.front().way == Message::Way::kRecv ? messages.front().peer : -1;
  auto ready = device_runtime(device).make_event();
  ready->record(current_stream(device));
  auto item = std::make_shared<Item>(
      Item{.number = 0,
           .fingerprint = {"messages", "", device},
           .timeout = chosen(timeout),
           .body = [this, messages = std::move(messages)](
                       const BackendCall& call) { move_messages(*backend_->on_device(), messages, call); },
           .work = std::make_shared<Work>(0, std::move(text)),
           .context = ExecutionContext::detached(),
           .started = {},
           .source_rank = source,
           .ready = std::move(ready)});
  std::optional<Error> failure;
  {
    const MutexLock lock(mutex_);
    failure = put(item);
  }
  return begin(item, failure);
}

void ProcessGroup::move_messages(DeviceBackend& backend, std::span<const Message> messages, const BackendCall& call) {
  for (const Message& message : messages) {
    if (message.way != Message::Way::kSend) continue;
    const uint64_t number = ++sent_[static_cast<size_t>(message.peer)];
    store_->set(key_of(rank_, message.peer, number), text_of(message));
  }
  for (const Message& message : messages) {
    if (message.way == Message::Way::kRecv) expect_message(message, call.deadline);
  }
  std::deque<Packed> all;
  for (const Message& message : messages) {
    all.emplace_back(message.tensor);
    if (message.way == Message::Way::kSend) all.back().pack();
  }
  backend.batch(call, [&] {
    for (size_t i = 0; i < messages.size(); ++i) {
      const int peer = messages[i].peer;
      messages[i].way == Message::Way::kSend ? backend.send(all[i].data(), all[i].size_bytes(), peer, call)
                                             : backend.recv(all[i].data(), all[i].size_bytes(), peer, call);
    }
  });
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].way == Message::Way::kRecv) all[i].unpack();
  }
}

// Waits until the sender has described its message.
void ProcessGroup::expect_message(const Message& message, SteadyTime deadline) {
  const std::string key = key_of(message.peer, rank_, ++received_[static_cast<size_t>(message.peer)]);
  for (;;) {
    check_open();
    try {
      store_->wait(key, kPiece);
      break;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadlineExceeded) throw;
      if (std::chrono::steady_clock::now() < deadline) continue;
      fail(ErrorCode::kDeadlineExceeded, "timed out waiting for rank ", message.peer);
    }
  }
  const std::string coming = store_->get(key);
  store_->remove(key);
  check(coming == text_of(message), "rank ", message.peer, " sends ", coming, ", expected ", text_of(message));
}

}  // namespace tensord::distributed
