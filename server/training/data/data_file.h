#pragma once

#include <string>

#include "core/files/table.h"

namespace tensord::server {

using files::DataTable;
using files::NamedArrays;

// Reads a data file by its extension: those of core/files/table.h, and .requests (of --capture-dir). What is allocated
// is charged to the calling thread's memory owner. The file is taken to be hostile. Throws Error that starts with the
// file's path.
DataTable read_data_file(const std::string& path);

// Requests that `--capture-dir` kept (server/executor/requests/recorded_requests.h): inputs, and outputs where they
// were kept, of all requests joined along their first dimension; an output named like an input becomes "output.NAME".
// What was kept of one model, with rows of one shape.
NamedArrays read_requests(const std::string& path);

}  // namespace tensord::server
