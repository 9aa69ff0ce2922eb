#pragma once

#include "core/base/error.h"

namespace tensord::ops {

// An Error whose message says what it is about already, so that `run` puts no operator's name before it.
class NamedError final : public Error {
 public:
  using Error::Error;
};

}  // namespace tensord::ops
