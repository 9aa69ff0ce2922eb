#pragma once

#include <string>
#include <string_view>

#include "server/executor/model/model.h"
#include "server/executor/requests/request.h"
#include "server/http/answer_text.h"
#include "server/rest/call_charge.h"
#include "server/rest/infer_json.h"

namespace tensord::server {

// The model that a generate request addresses, and the name and version that the client used.
struct GenerateTarget {
  std::string name, version;
  const Signature& signature;
};

// Parses a generate request. Members, including those of "parameters", that name an input of the model become inputs,
// each at most once; all others become parameters. Limits, charging and errors are those of parse_infer_json.
RestRequest parse_generate_json(const GenerateTarget& target, std::string_view json, uint64_t max_input_bytes,
                                const CallCharge& charge);

// Appends outputs and parameters as one flat JSON object. Copies made for it are charged to `quota`.
void write_generated_json(const ResponseHead& head, const std::vector<InferTensor>& outputs,
                          const HttpMemoryQuota& quota, AnswerText& out);

}  // namespace tensord::server
