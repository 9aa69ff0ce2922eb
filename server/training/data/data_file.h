#pragma once

#include <string>

#include "core/files/table.h"

namespace tensord::server {

using files::DataTable;
using files::NamedArrays;

// Reads a data file by its extension: those of core/files/table.h, and .requests (of --capture-dir). Memory is charged
// to the calling thread's owner. The file may be hostile. Throws Error that starts with the file's path. `wanted`: the
// arrays that are used, if not all are (read_csv).
DataTable read_data_file(const std::string& path, const std::vector<std::string>& wanted = {});

// The text with names below `folder` in place of this machine's paths, which clients need not know.
std::string without_folder(const std::string& text, const std::string& folder);

// Throws Error{kInvalidArgument} if the file lacks one of these arrays, as far as that can be seen without reading
// much.
void check_data_names(const std::string& path, const std::vector<std::string>& wanted);

// Reads requests captured by `--capture-dir` (server/executor/requests/recorded_requests.h): inputs, and outputs if
// they were captured, concatenated along the first dimension. An output with the name of an input becomes
// "output.NAME". REQUIRES: all are of one model, with rows of equal shapes.
NamedArrays read_requests(const std::string& path);

}  // namespace tensord::server
