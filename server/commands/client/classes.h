#pragma once

#include <tensord/client/tensor.h>

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>

// The answer to a request for classes: for each row its largest values as texts, "VALUE:INDEX[:LABEL]". Throws
// client::Error for others.
namespace tensord::server {

// For each row a list of {"score", "index", "label"}.
nlohmann::ordered_json json_of_classes(const client::Tensor& tensor);
// A line for each row: "  cat 0.9312, dog 0.0421".
void print_classes(std::ostream& out, const client::Tensor& tensor);

}  // namespace tensord::server
