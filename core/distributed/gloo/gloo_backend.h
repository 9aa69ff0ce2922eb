#pragma once

#include <string>

#include "core/distributed/group/backend.h"

namespace tensord::distributed {

struct GlooOptions {
  // The numeric address where this process listens for the other ranks; see own_address. The loopback address suffices
  // on one host.
  std::string address = "127.0.0.1";
};

// Backends over Gloo, for ranks in several processes and hosts. Every two ranks of a group have one connection, which
// is neither encrypted nor authenticated (GroupOptions::secret proves the peer's identity once, at the start). Use it
// on trusted networks. Gloo is linked into its own shared library, libtensord_gloo.so, which is searched beside the
// program or library that contains this code (places_of_object), or at TENSORD_GLOO.
//
// A process that uses Gloo ignores SIGPIPE, which a lost peer would raise. Throws Error{kUnimplemented} that lists the
// searched places if the library is not found.
BackendFactory gloo_backends(const GlooOptions& options = {});
bool has_gloo();

// Returns the numeric address that this host uses to reach `host`, or that of an interface, by its exact name, if one
// is given. Throws Error: kUnavailable, or kNotFound for the interface.
std::string own_address(const std::string& host, const std::string& interface = "");

}  // namespace tensord::distributed
