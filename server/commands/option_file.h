#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace tensord::server {

// Returns the text of a file of options as CLI11 reads it: without comments, a list on one line. CLI11 skips or
// misreads what it does not understand, so each line is checked: `[COMMAND]`, or `OPTION = VALUE` of an option of that
// command. Throws CLI::ConfigError that starts with the file and the line, and names what would be right.
std::string plain_option_file(const CLI::App& app, const std::string& file, std::string_view text);

}  // namespace tensord::server
