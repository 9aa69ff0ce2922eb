#pragma once

#include "tensord/methods.h"
//
#include "core/ops/arguments.h"

namespace tensord {

using ops::Scalar;  // a number of any type

}  // namespace tensord
