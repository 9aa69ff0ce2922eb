#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tensord::server {

// Calls about the models of a running daemon. All throw Error with the code and the text that the daemon gave;
// kUnavailable when it cannot be reached. For one thread.
class RepositoryClient {
 public:
  explicit RepositoryClient(const std::string& address);
  ~RepositoryClient();

  struct Model {
    std::string name, version, state, reason;  // the last three are empty for what was never loaded
  };
  std::vector<Model> index(bool only_ready);

  struct Load {
    std::string model;
    std::optional<std::string> config;         // JSON
    std::map<std::string, std::string> files;  // path in the model's folder → file here
    std::string labels;                        // "stable=2,canary=3"; empty: they stay
    bool labels_only = false;                  // loads nothing
  };
  void load(const Load& load);
  // Returns when the memory is back.
  void unload(const std::string& model, bool with_dependents);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::server
