#pragma once

#include <functional>
#include <memory>
#include <string>

namespace tensord::server {

struct HttpRequest {
  std::string path;    // without the query, with %-escapes resolved
  std::string accept;  // the header; empty: none, as the next
  std::string authorization;
};

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::string authenticate = {};  // the header WWW-Authenticate; empty: none
};

// A small HTTP/1.1 port that answers GET and HEAD. A thread accepts, some answer; a connection carries one request and
// has seconds to send it, so that slow clients do not keep others out for long.
class HttpServer {
 public:
  // Called on several threads; what it throws becomes status 500.
  using Handler = std::function<HttpAnswer(const HttpRequest& request)>;

  // Throws Error{kUnavailable} saying for `purpose` that the address cannot be bound. Port 0 takes a free one.
  HttpServer(const std::string& purpose, const std::string& address, int port, Handler handler);
  ~HttpServer();  // answers what it has begun, then stops
  int port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tensord::server
