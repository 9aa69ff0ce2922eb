#pragma once

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace tensord {

// What the call throws; a failure of the test when it throws nothing.
template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ErrorCode::kInternal, ""};
}

}  // namespace tensord
