#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/jit/runtime/module.h"
#include "core/ops/schema.h"
#include "core/ops/value.h"
#include "core/tensor/tensor.h"
#include "server/commands/input_text.h"

namespace tensord::server {

// Parses a dtype name such as "float32". Throws Error{kInvalidArgument}.
DType dtype_named(const std::string& name);
// Floats in -1 … 1 or integers in 0 … 15, the same on every run.
Tensor made_up_tensor(const Dims& sizes, DType dtype);

// The value that --input gives for one argument.
struct GivenArgument {
  std::optional<ops::Value> value;  // unset if no input names the argument
  bool is_made_up = false;          // only shape and dtype matter
};

// Returns one entry per argument of the module's method. If `batch` is above 0, it is the first size of generated
// tensors, whose type, unless given, is what the file or the graph says, otherwise float32. Throws Error; invalid
// values give kInvalidArgument that names the input.
std::vector<GivenArgument> read_inputs(const std::string& flag, const std::vector<std::string>& texts,
                                       const jit::Module& module, const jit::Method& method, WholeNumber number,
                                       int64_t batch = 0);
// Returns the arguments of a call, without trailing arguments that keep their defaults.
std::vector<ops::Value> read_call(const std::string& flag, const std::vector<std::string>& texts,
                                  const jit::Module& module, const jit::Method& method, WholeNumber number,
                                  int64_t batch = 0);

}  // namespace tensord::server
