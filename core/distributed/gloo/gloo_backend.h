#pragma once

#include <string>

#include "core/distributed/group/backend.h"

namespace tensord::distributed {

struct GlooOptions {
  // Where this process listens for the others' connections, in digits; see own_address. On one host: loopback.
  std::string address = "127.0.0.1";
};

// Backends over Gloo, for ranks in several processes and hosts: a connection between each two ranks of each group,
// neither encrypted nor authenticated (GroupOptions::secret proves who is there, no more): for networks one trusts.
// Gloo is in an object of its own, libtensord_gloo.so: beside the program or library that this code is in, in
// ../lib/tensord or lib/tensord, or where TENSORD_GLOO says.
//
// A process that uses it ignores SIGPIPE, which a lost peer would raise. Throws Error{kUnimplemented} that names the
// places where the object is not.
BackendFactory gloo_backends(const GlooOptions& options = {});
bool has_gloo();

// The address, in digits, that this host's packets to `host` come from; or that of an interface, by its exact name,
// when that is not empty. Throws Error{kUnavailable}, kNotFound for the interface.
std::string own_address(const std::string& host, const std::string& interface = "");

}  // namespace tensord::distributed
