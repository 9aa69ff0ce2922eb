#pragma once

#include <gtest/gtest.h>

#include "core/base/execution_context.h"

namespace tensord {

// A context in which every field differs from that of a new thread. Its pointers must not be dereferenced, except
// `cancellation`, which is the caller's or null.
inline ExecutionContext changed_context(const CancellationScope* cancellation) {
  static char places[3];
  ExecutionContext out;
  out.memory_owner = 7;
  out.threads = 4;
  out.grad_mode = {false, true};
  out.numerics = {.is_deterministic = true};
  out.autocast = {.cpu = AutocastType::kBFloat16};
  out.included_keys = Functionality::kShapeInference;
  out.excluded_keys = kAutogradKeys;
  out.generator = reinterpret_cast<ops::Generator*>(&places[0]);
  out.cancellation = cancellation;
  out.origin = reinterpret_cast<const autograd::OriginScope*>(&places[1]);
  out.stream = reinterpret_cast<DeviceStream*>(&places[2]);
  // A new field does not compile here until it has a value above.
  const auto& [owner, threads, mode, numerics, autocast, included, excluded, generator, scope, origin, stream] = out;
  const ExecutionContext fresh;
  EXPECT_NE(owner, fresh.memory_owner);
  EXPECT_NE(threads, fresh.threads);
  EXPECT_FALSE(mode == fresh.grad_mode);
  EXPECT_FALSE(numerics == fresh.numerics);
  EXPECT_FALSE(autocast == fresh.autocast);
  EXPECT_FALSE(included == fresh.included_keys);
  EXPECT_FALSE(excluded == fresh.excluded_keys);
  EXPECT_NE(generator, fresh.generator);
  EXPECT_EQ(scope, cancellation);
  EXPECT_NE(origin, fresh.origin);
  EXPECT_NE(stream, fresh.stream);
  return out;
}

// The context of work that nobody waits for.
inline ExecutionContext without_stack(ExecutionContext context) {
  context.generator = nullptr;
  context.cancellation = nullptr;
  context.origin = nullptr;
  context.stream = nullptr;
  return context;
}

}  // namespace tensord
