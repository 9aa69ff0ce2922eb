#pragma once

#include <map>
#include <string>
#include <string_view>

#include "server/http/message.h"
#include "server/rest/json_reader.h"
#include "server/transport/infer/encode.h"
#include "server/transport/infer/message.h"

namespace tensord::server {

// Which outputs of a request leave as bytes behind the JSON, and which as JSON.
struct OutputForms {
  bool is_binary = false;  // those that are not listed
  std::map<std::string, bool> listed;
  bool wants_binary(const std::string& output) const {
    const auto found = listed.find(output);
    return found == listed.end() ? is_binary : found->second;
  }
};

// A request of infer, taken apart but not checked against its model. Points into what it was read from.
struct RestRequest {
  InferMessage message;
  OutputForms forms;
};

// Reads a request: `json` is the JSON of it, `wire` the whole body, whose tensors begin at `tensors_at`. Model and
// version are those of the path. `wire` and what `json` lies in must outlive the result. `max_input_bytes` bounds an
// input in JSON; 0: no bound. Throws Error with the protocol's texts.
RestRequest parse_infer_json(std::string model, std::string version, std::string_view json, const WireMessage& wire,
                             size_t tensors_at, uint64_t max_input_bytes);

// The request that a body without JSON is: the bytes of the model's one input. Outputs are binary. Throws Error.
RestRequest raw_request(std::string model, std::string version, const WireMessage& wire, const Signature& signature,
                        std::string& prefix);

// A parameter's value. Throws Error for what none can be.
ParameterValue read_json_parameter(JsonReader& reader, const std::string& name);

// The answer to a request of infer: JSON, and behind it the outputs that leave as bytes. `is_elsewhere`: outputs whose
// data the client finds in its own memory; empty: none. Throws Error for what cannot be sent.
struct InferAnswer {
  HttpAnswer answer;
  uint64_t copied_bytes = 0;
};
InferAnswer encode_infer_json(const ResponseHead& head, const std::vector<InferTensor>& outputs,
                              const std::vector<bool>& is_elsewhere, const OutputForms& forms);

// Appends `"parameters":{…},`; nothing when there are none.
void write_json_parameters(const ParameterMap& parameters, std::string& out);

}  // namespace tensord::server
