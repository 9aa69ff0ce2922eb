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
// input in JSON; 0: no bound. `charge` counts what becomes of it, also when inputs are made, and must outlive the
// result too. Throws Error with the protocol's texts.
RestRequest parse_infer_json(std::string model, std::string version, std::string_view json, const WireMessage& wire,
                             size_t tensors_at, uint64_t max_input_bytes, const CallCharge& charge);

// The request that a body without JSON is: the bytes of the model's one input. Outputs are binary. Throws Error.
RestRequest raw_request(std::string model, std::string version, const WireMessage& wire, const Signature& signature,
                        std::string& prefix);

// Reads a parameter's value into `parameters`. Throws Error for what none can be, and for more than a request may have.
void read_json_parameter(JsonReader& reader, const std::string& name, const CallCharge& charge,
                         ParameterMap& parameters);

// The answer to a request of infer: JSON, and behind it the outputs that leave as bytes. `is_elsewhere`: outputs whose
// data the client finds in its own memory; empty: none. What is made is counted by `quota` first. Throws Error for what
// cannot be sent.
struct InferAnswer {
  HttpAnswer answer;
  uint64_t copied_bytes = 0;
};
InferAnswer encode_infer_json(const ResponseHead& head, const std::vector<InferTensor>& outputs,
                              const std::vector<bool>& is_elsewhere, const OutputForms& forms,
                              const HttpMemoryQuota& quota, std::function<bool()> is_gone);

// Appends the elements of an output as write_json_data does. A tensor that does not lie row by row is copied, counted
// by `quota`.
void write_json_output(const InferTensor& output, const HttpMemoryQuota& quota, AnswerText& out,
                       bool has_brackets = true);

// Appends the members: `"a":1,"b":"c"`.
void write_json_parameters(const ParameterMap& parameters, AnswerText& out);

}  // namespace tensord::server
