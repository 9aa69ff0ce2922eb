#include "tensord/client/request.h"

#include "tensord/client/error.h"

namespace tensord::client {

const Tensor& Result::output(const std::string& name) const {
  for (const NamedTensor& output : outputs) {
    if (output.name == name) return output.tensor;
  }
  throw NotFoundError("the result of '" + model + "' has no output '" + name + "'");
}

const Tensor& Result::output() const {
  if (outputs.size() != 1) {
    throw FailedPreconditionError("the result of '" + model + "' has " + std::to_string(outputs.size()) +
                                  " outputs: name the one that is meant");
  }
  return outputs[0].tensor;
}

bool Result::is_final() const {
  const auto found = parameters.find("triton_final_response");
  if (found == parameters.end()) return true;
  const auto* value = std::get_if<bool>(&found->second);
  return value == nullptr || *value;
}

}  // namespace tensord::client
