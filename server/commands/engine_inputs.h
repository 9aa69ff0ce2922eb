#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ops/schema.h"
#include "core/ops/value.h"
#include "core/tensor/tensor.h"
#include "server/commands/input_text.h"

namespace tensord::server {

// By its name, "float32". Throws Error{kInvalidArgument}.
DType dtype_named(const std::string& name);
// Floats spread over -1 … 1, integers over 0 … 15, the same on every run.
Tensor made_up_tensor(const Dims& sizes, DType dtype);

// What the texts of --input give an argument of a method.
struct GivenArgument {
  std::optional<ops::Value> value;  // none: nothing
  bool is_made_up = false;          // only its sizes and dtype are meant
};

// One for each argument of the method. Above 0, `batch` is the first size of what is made up. Throws Error, for values
// kInvalidArgument that names the input.
std::vector<GivenArgument> read_inputs(const std::string& flag, const std::vector<std::string>& texts,
                                       const ops::Schema& schema, WholeNumber number, int64_t batch = 0);
// The same as the arguments of a call, without those at the end that keep their defaults.
std::vector<ops::Value> read_call(const std::string& flag, const std::vector<std::string>& texts,
                                  const ops::Schema& schema, WholeNumber number, int64_t batch = 0);

}  // namespace tensord::server
