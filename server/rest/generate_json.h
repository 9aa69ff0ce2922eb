#pragma once

#include <string>
#include <string_view>

#include "server/executor/model/model.h"
#include "server/executor/requests/request.h"
#include "server/http/answer_text.h"
#include "server/rest/call_charge.h"
#include "server/rest/infer_json.h"

namespace tensord::server {

// The model that generate asks, and how it was named.
struct GenerateTarget {
  std::string name, version;
  const Signature& signature;
};

// Reads a request of generate: members, also those of "parameters", that are inputs of the model, each once, and
// parameters. Bounds, charge and errors as of parse_infer_json.
RestRequest parse_generate_json(const GenerateTarget& target, std::string_view json, uint64_t max_input_bytes,
                                const CallCharge& charge);

// Appends the outputs and parameters as one flat object. `quota` counts copies that are made for it.
void write_generated_json(const ResponseHead& head, const std::vector<InferTensor>& outputs,
                          const HttpMemoryQuota& quota, AnswerText& out);

}  // namespace tensord::server
