#include "server/training/ranks/stream_broadcaster.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/distributed/value_bytes.h"
#include "server/training/value_dict.h"

namespace tensord::server {
namespace {

using namespace std::chrono_literals;
using ops::Value;

constexpr auto kPopTimeout = 20ms;
// Polling interval: a closed stream returns immediately.
constexpr auto kRest = 1ms;

bool write_all(int socket, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t written = TEMP_FAILURE_RETRY(send(socket, bytes, count, MSG_NOSIGNAL));
    if (written < 0) return false;
    bytes += written;
    count -= static_cast<size_t>(written);
  }
  return true;
}

bool read_all(int socket, char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t got = TEMP_FAILURE_RETRY(read(socket, bytes, count));
    if (got <= 0) return false;
    bytes += got;
    count -= static_cast<size_t>(got);
  }
  return true;
}

// Writes a length-prefixed dict.
bool write_message(int socket, const ValueDict& message) {
  const std::string bytes = distributed::bytes_of_value(message.value());
  const uint64_t size = bytes.size();
  return write_all(socket, reinterpret_cast<const char*>(&size), sizeof(size)) &&
         write_all(socket, bytes.data(), bytes.size());
}

void add_batch(ValueDict& message, const StreamedBatch& batch) {
  ValueDict arrays;
  for (const auto& [name, tensor] : batch.arrays) arrays.set(name.c_str(), tensor);
  message.set("number", batch.number);
  message.set("arrays", arrays.value());
}

void push(const ValueDict& message, BatchStream& stream) {
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (const auto& [name, tensor] : message.at("arrays").to_dict()->items()) {
    arrays.emplace_back(name.to_string(), tensor.to_tensor());
  }
  stream.push(message.at("number").to_int(), std::move(arrays));
  std::promise<void> room;
  stream.when_room([&room] { room.set_value(); });
  room.get_future().wait();
}

}  // namespace

StreamBroadcaster::StreamBroadcaster(std::shared_ptr<BatchStream> stream, int socket)
    : stream_(std::move(stream)), socket_(socket), thread_("stream-broadcaster", [this] { work(); }) {}

StreamBroadcaster::~StreamBroadcaster() {
  is_stopped_ = true;
  shutdown(socket_, SHUT_RDWR);
  thread_.join();
}

void StreamBroadcaster::work() {
  for (bool told_client = false; !is_stopped_;) {
    StreamedBatch batch;
    const BatchStream::Popped popped = stream_->pop(kPopTimeout, batch);
    const bool has_client = stream_->has_client();
    if (popped == BatchStream::Popped::kNothing && has_client == told_client) {
      std::this_thread::sleep_for(kRest);
      continue;
    }
    ValueDict message;
    message.set("has_client", has_client);
    message.set("is_complete", popped == BatchStream::Popped::kComplete);
    if (popped == BatchStream::Popped::kBatch) add_batch(message, batch);
    batch = {};
    if (!write_message(socket_, message) || popped == BatchStream::Popped::kComplete) return;
    told_client = has_client;
  }
}

void read_streamed(int socket, BatchStream& stream) {
  bool has_client = false;
  for (uint64_t size; read_all(socket, reinterpret_cast<char*>(&size), sizeof(size));) {
    std::string bytes(size, '\0');
    if (!read_all(socket, bytes.data(), bytes.size())) return;
    const ValueDict message(distributed::value_of_bytes(bytes));
    bytes = {};
    const bool is_complete = message.at("is_complete").to_bool();
    const bool before = std::exchange(has_client, message.at("has_client").to_bool());
    if (has_client && !before) stream.attach();
    if (message.has("arrays")) push(message, stream);
    if (is_complete || (before && !has_client)) stream.detach(is_complete);
  }
}

}  // namespace tensord::server
