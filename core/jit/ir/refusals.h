#pragma once

#include <string>
#include <vector>

namespace tensord::jit {

// Makes the loading of a model on this thread continue after an unsupported operator, attribute or shape, so that
// `tensord check` can report all of them. The loaded model is unusable, and loading ends with an error.
class RefusalCollector {
 public:
  RefusalCollector();  // REQUIRES: this thread has no other collector
  ~RefusalCollector();
  RefusalCollector(const RefusalCollector&) = delete;
  RefusalCollector& operator=(const RefusalCollector&) = delete;

  // In the order of the file, each text once.
  const std::vector<std::string>& refusals() const { return refusals_; }

 private:
  friend bool collect_refusal(const std::string& message);
  std::vector<std::string> refusals_;
};

// Returns whether a collector took the message, so that the caller may continue; if false, the caller throws.
bool collect_refusal(const std::string& message);
// Throws Error{kUnimplemented} with the first message if any was collected.
void check_none_refused();

}  // namespace tensord::jit
