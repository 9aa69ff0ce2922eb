#pragma once

#include <tensord/client/tensor.h>

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>

// Output of a classification request: for each row, the largest values as strings "VALUE:INDEX[:LABEL]". The functions
// throw client::Error for any other output.
namespace tensord::server {

// One list of {"score", "index", "label"} per row.
nlohmann::ordered_json json_of_classes(const client::Tensor& tensor);
// One line per row: "  cat 0.9312, dog 0.0421".
void print_classes(std::ostream& out, const client::Tensor& tensor);

}  // namespace tensord::server
