#include "server/transport/access/access.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "core/base/ascii.h"
#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr std::array<const char*, kCallGroups> kGroupNames = {
    "health",     "metadata", "inference", "model-repository", "shared-memory", "model-config",
    "statistics", "trace",    "logging",   "training",         "training-hosts"};

std::string_view to_view(const grpc::string_ref& text) { return {text.data(), text.size()}; }

CallGroup restricted_group(const char* what, const std::string& name) {
  try {
    return parse_call_group(name);
  } catch (const Error& error) {
    fail(error.code(), "unknown restricted ", what, " '", name, "': ", error.what());
  }
}

// Parses "GROUP[,GROUP…]:KEY=VALUE". `prefix` is prepended to the key, and errors call a group `what`.
void add_rules(const char* flag, const char* what, const char* prefix, const std::string& text,
               AccessPolicy::Rules& rules) {
  const size_t colon = text.find(':');
  const size_t equals = colon == std::string::npos ? colon : text.find('=', colon);
  check(equals != std::string::npos && colon > 0 && equals > colon + 1, flag, " must be GROUP,…:KEY=VALUE, got '", text,
        "'");
  std::string header = prefix + text.substr(colon + 1, equals - colon - 1);
  for (char& c : header) c = to_ascii_lower(c);
  std::istringstream names(text.substr(0, colon));
  for (std::string name; std::getline(names, name, ',');) {
    const CallGroup group = restricted_group(what, name);
    const bool is_new = rules.emplace(group, AccessPolicy::Rule{header, text.substr(equals + 1)}).second;
    check(is_new, flag, ": ", what, " '", name, "' can not be specified in multiple config groups");
  }
}

}  // namespace

const char* to_string(CallGroup group) { return kGroupNames[static_cast<size_t>(group)]; }

CallGroup parse_call_group(std::string_view name) {
  const auto found = std::find(kGroupNames.begin(), kGroupNames.end(), name);
  if (found == kGroupNames.end()) fail(ErrorCode::kInvalidArgument, "there is no group of calls '", name, "'");
  return static_cast<CallGroup>(found - kGroupNames.begin());
}

AccessPolicy AccessPolicy::make(const NetworkOptions& options) {
  Rules rules;
  for (const std::string& text : options.restricted_protocols) {
    add_rules("--grpc-restricted-protocol", "protocol", "triton-grpc-protocol-", text, rules);
  }
  Rules http_rules;
  for (const std::string& text : options.http_restricted_apis) {
    add_rules("--http-restricted-api", "api", "", text, http_rules);
  }
  std::shared_ptr<const TokenFile> tokens;
  if (!options.access_tokens.empty()) tokens = std::make_shared<const TokenFile>(options.access_tokens);
  return AccessPolicy(std::move(rules), std::move(tokens), std::move(http_rules));
}

grpc::Status AccessPolicy::check(const grpc::ServerContextBase& context, CallGroup group) const {
  if (rules_.empty() && !tokens_) return grpc::Status::OK;
  const Metadata& metadata = context.client_metadata();
  const grpc::Status status = check_rule(metadata, group);
  return status.ok() && tokens_ ? check_token(metadata, group) : status;
}

const AccessPolicy::Rule* AccessPolicy::http_rule(CallGroup group) const {
  for (const Rules* rules : {&http_rules_, &rules_}) {
    const auto rule = rules->find(group);
    if (rule != rules->end()) return &rule->second;
  }
  return nullptr;
}

TokenTable::Answer AccessPolicy::find_token(std::string_view token, CallGroup group) const {
  return tokens_ ? tokens_->table()->find(token, group) : TokenTable::Answer::kOpen;
}

grpc::Status AccessPolicy::check_rule(const Metadata& metadata, CallGroup group) const {
  const auto rule = rules_.find(group);
  if (rule == rules_.end()) return grpc::Status::OK;
  const auto [first, last] = metadata.equal_range(rule->second.header);
  for (auto header = first; header != last; ++header) {
    if (is_same_secret(to_view(header->second), rule->second.value)) return grpc::Status::OK;
  }
  return {grpc::StatusCode::PERMISSION_DENIED,
          concat("This protocol is restricted, expecting header '", rule->second.header, "'")};
}

bool AccessPolicy::find_in_tokens(const Metadata& metadata, CallGroup group,
                                  const std::function<bool(std::string_view, TokenTable::Answer)>& use) const {
  constexpr std::string_view kScheme = "Bearer ";
  const auto table = tokens_->table();
  const auto [first, last] = metadata.equal_range("authorization");
  return std::any_of(first, last, [&](const auto& header) {
    const std::string_view value = to_view(header.second);
    if (!value.starts_with(kScheme)) return false;
    const std::string_view token = value.substr(kScheme.size());
    return use(token, table->find(token, group));
  });
}

std::string AccessPolicy::token_of(const grpc::ServerContextBase& context, CallGroup group) const {
  std::string out;
  if (!tokens_) return out;
  find_in_tokens(context.client_metadata(), group, [&](std::string_view token, TokenTable::Answer answer) {
    if (answer == TokenTable::Answer::kOpen) out = token;
    return !out.empty();
  });
  return out;
}

grpc::Status AccessPolicy::check_token(const Metadata& metadata, CallGroup group) const {
  // Probes have no token, and health reveals nothing.
  if (group == CallGroup::kHealth) return grpc::Status::OK;
  bool is_known = false;
  const bool is_open = find_in_tokens(metadata, group, [&](std::string_view, TokenTable::Answer answer) {
    is_known = is_known || answer == TokenTable::Answer::kOtherGroups;
    return answer == TokenTable::Answer::kOpen;
  });
  if (is_open) return grpc::Status::OK;
  if (is_known) {
    return {grpc::StatusCode::PERMISSION_DENIED, concat("the token is not for calls of '", to_string(group), "'")};
  }
  return {grpc::StatusCode::UNAUTHENTICATED,
          "expecting header 'authorization: Bearer TOKEN' with a token of the server"};
}

}  // namespace tensord::server
