#pragma once

#include "core/base/error.h"

namespace tensord::ops {

// An Error whose message already names its subject, so that `run` does not put the operator's name in front.
class NamedError final : public Error {
 public:
  using Error::Error;
};

}  // namespace tensord::ops
