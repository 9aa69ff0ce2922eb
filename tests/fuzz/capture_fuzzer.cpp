#include "server/executor/requests/recorded_requests.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  return fuzz::may_refuse([&] {
    const fuzz::InputFile file(data, size);
    const auto requests = server::read_recorded_requests(file.path(), {.requests = 1000, .bytes = 16 << 20});
    // Whatever was read can be written and read again.
    std::string again = server::recorded_requests_magic();
    for (const server::RecordedRequest& request : requests) {
      server::RecordWriter writer(request.model, request.version, request.id, request.time_unix_us);
      for (const auto& input : request.inputs) writer.add_input(input);
      for (const auto& output : request.outputs) writer.add_output(output);
      again += writer.finish();
    }
    const fuzz::InputFile copy(reinterpret_cast<const uint8_t*>(again.data()), again.size());
    if (server::read_recorded_requests(copy.path()).size() != requests.size()) std::abort();
  });
}
