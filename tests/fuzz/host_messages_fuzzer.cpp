#include "server/transport/hosts/host_wire.h"
#include "tests/fuzz/fuzz.h"

namespace {

template <class Message, class Read>
void try_message(const uint8_t* data, size_t size, const Read& read) {
  Message message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return;
  tensord::fuzz::may_refuse([&] {
    Message again;
    tensord::server::to_message(read(message), again);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  static const google::protobuf::LogSilencer& silencer = *new google::protobuf::LogSilencer;
  (void)silencer;
  try_message<hosts::v1::HostReport>(data, size, server::to_report);
  try_message<hosts::v1::HostOrder>(data, size, server::to_order);
  return 0;
}
