#pragma once

#include <functional>
#include <string>

#include "core/ops/value.h"

namespace tensord::ops {

// What a class of "__torch__.torch.classes." is made of: PyTorch writes such objects as the state that their
// __getstate__ gives, and there is no code for them in the archive.
using CustomClassFn = std::function<IntrusivePtr<OpaqueObject>(const Value& state)>;

// Null when there is none.
const CustomClassFn* find_custom_class(const std::string& qualified_name);

// Registers one before main. The function takes the state to be hostile, and throws Error.
class CustomClassBuilder {
 public:
  CustomClassBuilder(const char* qualified_name, CustomClassFn function);
};

#define CUSTOM_CLASS(NAME, FUNCTION)                                                                            \
  static const ::tensord::ops::CustomClassBuilder TENSORD_CONCAT(custom_class_registration_, __COUNTER__)(NAME, \
                                                                                                          FUNCTION)

}  // namespace tensord::ops
