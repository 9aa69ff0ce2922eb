#pragma once

#include <functional>
#include <memory>
#include <string>

namespace tensord::server {

// The HTTP port that Prometheus reads: GET /metrics gives what `answer` returns at that moment for the Accept header.
// A thread accepts, two answer.
class ExpositionServer {
 public:
  struct Answer {
    std::string content_type;
    std::string body;
  };
  // Throws Error{kUnavailable} when the address cannot be bound. Port 0 takes a free one.
  ExpositionServer(const std::string& address, int port, std::function<Answer(const std::string& accept)> answer);
  ~ExpositionServer();  // answers what it has begun, then stops
  int port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tensord::server
