#pragma once

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace tensord {

// Returns the call's error; fails the test if the call throws nothing.
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
