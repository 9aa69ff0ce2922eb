#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/config/network_options.h"
#include "server/transport/access/access_tokens.h"
#include "server/transport/access/call_group.h"

namespace tensord::server {

// Which header a client must send for calls of a group. Thread-safe.
class AccessPolicy {
 public:
  struct Rule {
    std::string header;  // lower case
    std::string value;
  };
  using Rules = std::map<CallGroup, Rule>;  // groups without a rule are open
  AccessPolicy() = default;
  // `tokens` null: no token is required. Otherwise every group except health requires one.
  explicit AccessPolicy(Rules rules, std::shared_ptr<const TokenFile> tokens = nullptr, Rules http_rules = {})
      : rules_(std::move(rules)), http_rules_(std::move(http_rules)), tokens_(std::move(tokens)) {}
  // From --grpc-restricted-protocol, --http-restricted-api and --access-tokens. Throws Error{kInvalidArgument}.
  static AccessPolicy make(const NetworkOptions& options);

  // OK, PERMISSION_DENIED, or UNAUTHENTICATED if the token is missing or unknown. Takes the same time for every wrong
  // value.
  grpc::Status check(const grpc::ServerContextBase& context, CallGroup group) const;
  // The client's token that gives access to a group; empty if none is required or none does.
  std::string token_of(const grpc::ServerContextBase& context, CallGroup group) const;
  // The header that an HTTP request needs for a group: from --http-restricted-api, else gRPC's. Null: none.
  const Rule* http_rule(CallGroup group) const;
  bool needs_token(CallGroup group) const { return tokens_ && group != CallGroup::kHealth; }
  // What a token gives access to. For the HTTP ports, whose requests have no gRPC metadata.
  TokenTable::Answer find_token(std::string_view token, CallGroup group) const;

 private:
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;
  grpc::Status check_rule(const Metadata& metadata, CallGroup group) const;
  grpc::Status check_token(const Metadata& metadata, CallGroup group) const;
  // Calls `use` with each token of the client and what it gives access to, until it returns true. Returns whether it
  // did.
  bool find_in_tokens(const Metadata& metadata, CallGroup group,
                      const std::function<bool(std::string_view token, TokenTable::Answer answer)>& use) const;

  Rules rules_, http_rules_;
  std::shared_ptr<const TokenFile> tokens_;
};

}  // namespace tensord::server
