#include "server/commands/option_file.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <sstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "server/commands/option_sources.h"

namespace tensord::server {
namespace {

std::string trimmed(const std::string& text) { return CLI::detail::trim_copy(text); }

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* inner) { return !inner->get_group().empty(); });  // no hidden ones
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* inner : commands_of(app)) {
    if (inner->get_name() == name) return inner;
  }
  return nullptr;
}

class OptionFileReader {
 public:
  OptionFileReader(const CLI::App& app, const std::string& file) : app_(app), file_(file), section_(&app) {}

  std::string plain(std::string_view text) {
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) {
      ++line_;
      if (trimmed(line).starts_with(';')) continue;
      line = without_comment(line);
      if (line.empty()) continue;
      if (list_begin_ > 0) {
        take_list_line(line);
      } else if (line.front() == '[') {
        open_section(line);
      } else {
        take_option(line);
      }
    }
    if (list_begin_ > 0) fail_unclosed();
    return out_;
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail_at(int line, const Parts&... parts) const {
    throw CLI::ConfigError(concat(file_, ":", line, ": ", parts...));
  }
  [[noreturn]] void fail_unclosed() const { fail_at(list_begin_, "the list has no ] at the end of a line"); }

  void open_section(const std::string& line) {
    const size_t end = line.find(']');
    const std::string name = trimmed(line.substr(1, end == line.npos ? line.npos : end - 1));
    if (end == line.npos || end + 1 != line.size() || name.starts_with('[')) {
      fail_at(line_, "expected a section such as [serve], alone on its line, got '", line, "'");
    }
    out_ += line + "\n";
    section_ = &app_;
    std::istringstream parts(name);
    for (std::string part; std::getline(parts, part, '.');) section_ = &command(*section_, part);
  }

  // The command of this name within another one.
  const CLI::App& command(const CLI::App& in, const std::string& name) const {
    if (const CLI::App* found = find_command(in, name)) return *found;
    std::vector<std::string> names;
    for (const CLI::App* inner : commands_of(in)) names.push_back(inner->get_name());
    fail_at(line_, "[", name, "] is the name of no command", right_names(name, names, names.size()));
  }

  void take_option(const std::string& line) {
    const size_t sign = line.find('=');
    if (sign == line.npos) fail_at(line_, "expected NAME = VALUE or [COMMAND], got '", line, "'");
    const std::string full_name = trimmed(line.substr(0, sign));
    std::string name = full_name;
    const CLI::App* owner = section_;
    for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.')) {
      owner = &command(*owner, name.substr(0, dot));
      name = name.substr(dot + 1);
    }
    CLI::detail::remove_quotes(name);
    check_name(*owner, name);
    const std::string value = trimmed(line.substr(sign + 1));
    if (value.empty()) fail_at(line_, "'", name, "' has no value");
    out_ += concat(full_name, " = ");
    if (value.front() == '[') {
      list_begin_ = line_;
      out_ += '[';
      take_list_line(trimmed(value.substr(1)));
    } else {
      out_ += value + "\n";
    }
  }

  void check_name(const CLI::App& owner, const std::string& name) const {
    if (has_option(owner, name)) return;
    const std::string section = section_of(owner);
    fail_at(line_, "there is no option '", name, "' ",
            section.empty() ? "before the first section" : concat("of [", section, "]"), hint_for(owner, name));
  }

  static bool has_option(const CLI::App& command, const std::string& name) {
    const std::vector<std::string> names = option_names(command);
    return std::ranges::find(names, name) != names.end();
  }

  // "jobs.list"; empty for the program itself.
  static std::string section_of(const CLI::App& command) {
    if (!command.get_parent()) return {};
    const std::string outer = section_of(*command.get_parent());
    return outer.empty() ? command.get_name() : concat(outer, ".", command.get_name());
  }

  std::string hint_for(const CLI::App& owner, const std::string& name) const {
    for (const CLI::App* at = &owner; at; at = at->get_parent()) {
      const std::string near = nearest(name, option_names(*at));
      if (near.empty()) continue;
      const std::string of = at == &owner ? "" : concat(" of [", section_of(*at), "]");
      return at->get_parent() || at == &owner ? concat("; did you mean '", near, "'", of, "?") : std::string();
    }
    for (const CLI::App* other : commands_of(app_)) {
      if (has_option(*other, name)) return concat("; it is an option of [", other->get_name(), "]");
    }
    std::string command = section_of(owner);
    std::ranges::replace(command, '.', ' ');
    return concat("; `tensord ", command, command.empty() ? "" : " ", "--help` lists what there is");
  }

  // Part of a list, behind the '[' that begins it.
  void take_list_line(const std::string& line) {
    const bool is_option = !line.empty() && is_name_start(line.front()) && line.find('=') != line.npos;
    if (line.starts_with('[') || is_option) fail_unclosed();
    out_ += line;
    if (!line.ends_with(']')) return;
    out_ += '\n';
    list_begin_ = 0;
  }
  static bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

  // CLI11 takes # within a string for a comment too.
  std::string without_comment(const std::string& line) const {
    char quote = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (c == '#' && quote == 0) return trimmed(line.substr(0, i));
      if (c == '#')
        fail_at(line_, "a string of this file cannot have a #; give it on the command line or as a variable");
      if (quote != 0 ? c == quote : c == '"' || c == '\'') quote = quote != 0 ? '\0' : c;
    }
    if (quote != 0) fail_at(line_, "the string does not end");
    return trimmed(line);
  }

  const CLI::App& app_;
  const std::string& file_;
  const CLI::App* section_;
  std::string out_;
  int line_ = 0;
  int list_begin_ = 0;  // the line; 0: not in a list
};

}  // namespace

std::string plain_option_file(const CLI::App& app, const std::string& file, std::string_view text) {
  return OptionFileReader(app, file).plain(text);
}

}  // namespace tensord::server
