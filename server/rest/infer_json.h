#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "server/http/answer_text.h"
#include "server/http/message.h"
#include "server/rest/json_reader.h"
#include "server/transport/infer/encode.h"
#include "server/transport/infer/message.h"

namespace tensord::server {

// Which outputs of a request are sent as binary data behind the JSON, and which as JSON.
struct OutputForms {
  bool is_binary = false;  // for outputs that the request does not list
  std::map<std::string, bool> listed;
  bool wants_binary(const std::string& output) const {
    const auto found = listed.find(output);
    return found == listed.end() ? is_binary : found->second;
  }
};

// A parsed infer request, not yet checked against its model. Points into the buffer that it was parsed from.
struct RestRequest {
  InferMessage message;
  OutputForms forms;
};

// Parses an infer request. `json` is its JSON part; `wire` is the whole body, with binary tensors from offset
// `tensors_at`. Model and version come from the path. `wire` and the buffer of `json` must outlive the result.
// `max_input_bytes` bounds an input in JSON; 0 means no bound. `charge` counts the memory that the request expands to,
// also while its inputs are built, so it must outlive the result. Throws Error with the protocol's messages.
RestRequest parse_infer_json(std::string model, std::string version, std::string_view json, const WireMessage& wire,
                             size_t tensors_at, uint64_t max_input_bytes, const CallCharge& charge);

// Makes a request of a body without JSON: it holds the bytes of the model's only input. Outputs are binary. Throws
// Error.
RestRequest raw_request(std::string model, std::string version, const WireMessage& wire, const Signature& signature,
                        std::string& prefix);

// Reads a parameter's value into `parameters`. Throws Error for a value that no parameter can have, and for too many
// parameters.
void read_json_parameter(JsonReader& reader, const std::string& name, const CallCharge& charge,
                         ParameterMap& parameters);

// The response to an infer request: JSON, then the binary outputs. `is_elsewhere` marks outputs written to the client's
// shared memory; an empty vector means none. Memory is charged to `quota` before it is allocated. Throws Error for
// outputs that cannot be sent.
struct InferAnswer {
  HttpAnswer answer;
  uint64_t copied_bytes = 0;
};
InferAnswer encode_infer_json(const ResponseHead& head, const std::vector<InferTensor>& outputs,
                              const std::vector<bool>& is_elsewhere, const OutputForms& forms,
                              const HttpMemoryQuota& quota, std::function<bool()> is_gone);

// Appends the elements of an output as write_json_data does. A non-contiguous tensor is copied; the copy is charged to
// `quota`.
void write_json_output(const InferTensor& output, const HttpMemoryQuota& quota, AnswerText& out,
                       bool has_brackets = true);

// Appends the members of a JSON object: `"a":1,"b":"c"`.
void write_json_parameters(const ParameterMap& parameters, AnswerText& out);

}  // namespace tensord::server
