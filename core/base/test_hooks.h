#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "core/base/test_hooks_option.h"

// Places where tests reach into the product. They exist in builds with TENSORD_TEST_HOOKS alone, which is a build
// option; core/base/test_hooks_option.h is made of it. Others compile to nothing.
namespace tensord {

template <class Function>
class TestHook;

// A function that a test may set, and that the product calls.
template <class... Arguments>
class TestHook<void(Arguments...)> {
 public:
  TestHook() = default;

#if TENSORD_TEST_HOOKS
  template <class F>
  requires std::is_invocable_v<F, Arguments...> TestHook(F function) : function_(std::move(function)) {}

  explicit operator bool() const { return static_cast<bool>(function_); }
  void operator()(Arguments... arguments) const { function_(std::forward<Arguments>(arguments)...); }

 private:
  std::function<void(Arguments...)> function_;
#else
  constexpr explicit operator bool() const { return false; }
  void operator()(Arguments...) const {}
#endif
};

}  // namespace tensord
