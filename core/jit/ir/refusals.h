#pragma once

#include <string>
#include <vector>

namespace tensord::jit {

// While it lives, what reads a model on this thread goes on after an operator, attribute or shape that it refuses, so
// that all of them are heard of: `tensord check`. What was read is of no use then, and the reading ends by an error.
class RefusalCollector {
 public:
  RefusalCollector();  // REQUIRES: this thread has none
  ~RefusalCollector();
  RefusalCollector(const RefusalCollector&) = delete;
  RefusalCollector& operator=(const RefusalCollector&) = delete;

  // In the order of the file, each text once.
  const std::vector<std::string>& refusals() const { return refusals_; }

 private:
  friend bool collect_refusal(const std::string& message);
  std::vector<std::string> refusals_;
};

// Whether somebody collects, so that the caller may go on; false: it throws.
bool collect_refusal(const std::string& message);
// Throws Error{kUnimplemented} with the first refusal, where any was collected.
void check_none_refused();

}  // namespace tensord::jit
